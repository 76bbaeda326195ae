"""From what came back to figures with their intervals."""

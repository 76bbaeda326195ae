"""Where the turn goes, and what the visitor is told."""

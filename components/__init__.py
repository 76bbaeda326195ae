"""How a step works: one Haystack component per file, foldered by the stage of a question's life it serves."""

import os

# Haystack reads this once, at its first import; a support desk's questions are nobody else's statistics.
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")

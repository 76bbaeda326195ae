"""How a step works: one Haystack component per file, foldered by the stage of a question's life it serves."""

import logging
import os

# Haystack reads this once, at its first import; a support desk's questions are nobody else's statistics.
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")
# When a step raises, Haystack makes a snapshot of what it was given. Questions are not written to files, whatever the
# environment says, and that a Turn has no place in a snapshot is no news for the log.
os.environ["HAYSTACK_PIPELINE_SNAPSHOT_SAVE_ENABLED"] = "false"
logging.getLogger("haystack.utils.base_serialization").setLevel(logging.ERROR)

"""Haystack components, one per file, in one folder per stage of a question's life."""

import logging
import os

# Haystack reads this once, on first import. Support questions must not end up in anyone else's statistics.
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "false")
# When a step raises, Haystack makes a snapshot of what it was given. Questions are not written to files, whatever the
# environment says, and that a Turn has no place in a snapshot is no news for the log.
os.environ["HAYSTACK_PIPELINE_SNAPSHOT_SAVE_ENABLED"] = "false"
logging.getLogger("haystack.utils.base_serialization").setLevel(logging.ERROR)

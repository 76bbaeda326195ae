"""Who attacks whom, and with what."""

from dataclasses import dataclass, field
from threading import Event, Semaphore

ATTACKER, VICTIM = "mallory", "acme"
PATIENCE_SECONDS = 60


@dataclass
class SlowTool:
    """A tool that answers when it is let go."""

    url: str = ""
    called: Semaphore = field(default_factory=lambda: Semaphore(0))
    go: Event = field(default_factory=Event)

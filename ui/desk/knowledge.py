"""What the pages about the knowledge base share: the tabs of their section."""

from pipelines import pages
from tenants.desk import sessions
from ui.desk.view import Tabs, entries

_TABS = (
    ("gaps", "/desk/gaps", "operate"),
    ("articles", "/desk/articles", "operate"),
    ("stale", "/desk/stale", "ingest"),
    ("contradictions", "/desk/contradictions", "ingest"),
    ("rejected", "/desk/rejected", "ingest"),
)


def tabs(current: str) -> Tabs:
    """The pages of the section."""
    return Tabs("gaps", entries(_TABS, current))


def may_publish() -> bool:
    """Whether the operator in this request decides what customers read."""
    return pages.may(sessions.current().operator, "ingest")

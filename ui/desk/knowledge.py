"""Shared code of the knowledge base pages: the tabs of their section."""

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
    """Return the pages of the section."""
    return Tabs("gaps", entries(_TABS, current))


def may_publish() -> bool:
    """Return whether the operator in this request may edit the content for customers."""
    return pages.may(sessions.current().operator, "ingest")

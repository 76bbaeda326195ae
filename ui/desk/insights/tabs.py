"""Tabs of the insight section."""

from ui.desk.view import Tabs, entries

_TABS = (
    ("figures", "/desk/insight", "operate"),
    ("audit", "/desk/audit", "operate"),
    ("reading", "/desk/reading", "ingest"),
    ("evaluation", "/desk/evaluation", "ingest"),
    ("playground", "/desk/playground", "ingest"),
)


def tabs(current: str) -> Tabs:
    """Return the pages of the section."""
    return Tabs("insight", entries(_TABS, current))

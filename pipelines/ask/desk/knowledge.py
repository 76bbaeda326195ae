"""What the pages about the knowledge base share: the tabs of their section."""

from dataclasses import dataclass

from pipelines import pages
from tenants.desk import sessions

_TABS = (
    ("gaps", "/desk/gaps", "operate"),
    ("articles", "/desk/articles", "operate"),
    ("stale", "/desk/stale", "ingest"),
    ("contradictions", "/desk/contradictions", "ingest"),
    ("rejected", "/desk/rejected", "ingest"),
)


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of the section."""

    name: str
    path: str
    current: bool


def tabs(current: str) -> tuple[Tab, ...]:
    """The pages of the section that the operator in this request may see."""
    operator = sessions.current().operator
    return tuple(Tab(name, path, name == current) for name, path, scope in _TABS if pages.may(operator, scope))


def may_publish() -> bool:
    """Whether the operator in this request decides what customers read."""
    return pages.may(sessions.current().operator, "ingest")

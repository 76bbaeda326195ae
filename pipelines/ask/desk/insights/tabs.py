"""The pages of insight beside one another."""

from pipelines import pages
from tenants.desk import sessions

_TABS = (
    ("figures", "/desk/insight", "operate"),
    ("audit", "/desk/audit", "operate"),
    ("reading", "/desk/reading", "ingest"),
    ("evaluation", "/desk/evaluation", "ingest"),
    ("playground", "/desk/playground", "ingest"),
)


def tabs() -> list[tuple[str, str]]:
    """Those that the operator in this request may see, by name and path."""
    operator = sessions.current().operator
    return [(name, path) for name, path, scope in _TABS if pages.may(operator, scope)]

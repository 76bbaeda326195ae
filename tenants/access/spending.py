"""A tenant's spending today, and whether its cap is reached. Days are in UTC."""

from datetime import UTC, datetime

from settings import get_settings
from tenants.access.tables import SpendingRow
from tenants.accounts import policy
from tenants.storage import database


def spent() -> float:
    """Return the US dollars spent today by the tenant in context."""
    with database.reading() as session:
        row = session.find(SpendingRow, _today())
        return 0.0 if row is None else row.usd


def cap() -> float | None:
    """Return the daily cap of the tenant in context: the lower one of its policy and of the installation."""
    caps = policy.current().spend_cap_usd_per_day, get_settings().spend_cap_usd_per_day
    return min((one for one in caps if one is not None), default=None)


def is_spent() -> bool:
    """Whether the tenant in context has reached its cap. Calls at work may still go a little beyond."""
    limit = cap()
    return limit is not None and spent() >= limit


def spend(usd: float) -> None:
    """Count US dollars of the tenant in context."""
    with database.writing() as session:
        row = session.locked(SpendingRow, day=_today(), usd=0.0)
        row.usd += usd


def _today() -> str:
    return datetime.now(UTC).date().isoformat()

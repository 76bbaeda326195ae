"""Last use of each token, exact to ten minutes, with few database queries.

A use is remembered in memory and written down when the tenant's revocations are read again: a moment at which the
database answers, and outside of the event loop.
"""

from datetime import UTC, datetime
from threading import Lock

from cachetools import TTLCache
from sqlalchemy import select, update

from settings import get_settings
from tenants.core import context
from tenants.core.context import Tenant
from tenants.core.errors import TryAgain
from tenants.storage import database
from tenants.storage.tables import TokenRow

_EVERY_SECONDS = 600.0
_MOST_NOTED = 10_000
_LOCK = Lock()
_NOTED: TTLCache[tuple[str, str, str], None] = TTLCache(_MOST_NOTED, _EVERY_SECONDS)
_UNWRITTEN: dict[tuple[str, str], set[str]] = {}


def note(caller: Tenant) -> None:
    """Remember that the caller's token was used."""
    place = get_settings().database, caller.tenant_id
    key = (*place, caller.token_id)
    with _LOCK:
        if caller.token_id and key not in _NOTED:
            _NOTED[key] = None
            _UNWRITTEN.setdefault(place, set()).add(caller.token_id)


def write() -> None:
    """Write down which tokens of the tenant in context were used. Those that were not issued here are not known."""
    tenant_id = context.current().tenant_id
    with _LOCK:
        used = _UNWRITTEN.pop((get_settings().database, tenant_id), set())
    if not used:
        return
    used_tokens = TokenRow.token_id.in_(used)
    try:
        with database.reading() as session:
            if session.scalar(select(TokenRow.token_id).where(used_tokens).limit(1)) is None:
                return
        with database.writing() as session:
            session.execute(update(TokenRow).where(used_tokens).values(used_at=datetime.now(UTC)))
    except TryAgain:
        # A standby is read-only; the caller still gets an answer.
        return

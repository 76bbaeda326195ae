"""Last use of each token, exact to ten minutes, with few database queries.

A use is remembered in memory. Once a minute, a thread writes down those of all tenants together; no request waits for
it.
"""

from asyncio import get_running_loop
from datetime import UTC, datetime
from threading import Lock
from time import monotonic

from cachetools import TTLCache
from sqlalchemy import tuple_, update

from settings import get_settings
from tenants.access.tables import TokenRow
from tenants.core.batches import batches
from tenants.core.context import Tenant
from tenants.core.errors import TryAgain
from tenants.storage import database

_EVERY_SECONDS = 600.0
_WRITTEN_SECONDS = 60.0
_MOST_NOTED = 10_000
_LOCK = Lock()
_WRITING = Lock()
_NOTED: TTLCache[tuple[str, str, str], None] = TTLCache(_MOST_NOTED, _EVERY_SECONDS)
_UNWRITTEN: dict[str, set[tuple[str, str]]] = {}
_WRITTEN_AT: dict[str, float] = {}


def note(caller: Tenant) -> None:
    """Remember that the caller's token was used."""
    place = get_settings().database
    key = (place, caller.tenant_id, caller.token_id)
    with _LOCK:
        if caller.token_id and key not in _NOTED:
            _NOTED[key] = None
            _UNWRITTEN.setdefault(place, set()).add((caller.tenant_id, caller.token_id))


def write_soon() -> None:
    """Call `write` in a thread, at most once a minute. Call it on the event loop."""
    place, now = get_settings().database, monotonic()
    if place in _UNWRITTEN and now - _WRITTEN_AT.get(place, float("-inf")) >= _WRITTEN_SECONDS:
        _WRITTEN_AT[place] = now
        get_running_loop().run_in_executor(None, write)


def write() -> None:
    """Write down which tokens were used, after any write in progress. Those that were not issued here are not known."""
    with _WRITING:
        with _LOCK:
            used = _UNWRITTEN.pop(get_settings().database, set())
        try:
            for batch in batches(used):
                with database.across_tenants(write=True) as session:
                    chosen = tuple_(TokenRow.tenant_id, TokenRow.token_id).in_(batch)
                    session.execute(update(TokenRow).where(chosen).values(used_at=datetime.now(UTC)))
        except TryAgain:
            # A standby is read-only; the callers still get answers.
            return

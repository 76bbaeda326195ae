"""Room for the texts of chats: messages, their copies, and events about them for webhooks and e-mails.

Threat: a tenant, or a visitor of its site, that fills the disk of all. What a tenant writes is counted by day. As it
approaches the limit, copies of chats are refused first, then customers' messages, then operators' changes. The
assistant's answers and events follow from these: they are counted and never refused, so nothing is lost half-way. Nor
are questions over the API and answers by e-mail, which are limited apart.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from types import MappingProxyType
from typing import Literal, TypeAlias

from sqlalchemy.event import listen

from settings import get_settings
from tenants.access.tables import SpendingRow
from tenants.core.errors import RateLimited
from tenants.storage import database, disk
from tenants.storage.tenant_session import TenantSession

Writing: TypeAlias = Literal["copy", "customer", "operator"]
_SHARES: Mapping[Writing, float] = MappingProxyType({"copy": 0.25, "customer": 0.75, "operator": 1.0})
"""Share of the day's limit at which each kind of writing is refused."""

_COUNTED = "chat_bytes"


def check(session: TenantSession, writing: Writing) -> None:
    """Check that the tenant in context may write to its chats.

    :raises RateLimited: `chats_full`: not before tomorrow.
    :raises TryAgain: `storage_full`: the disk of the records is full.
    """
    settings = get_settings()
    if not database.is_shared(settings):
        disk.check()
    now = datetime.now(UTC)
    row = session.find(SpendingRow, now.date().isoformat()) if settings.chat_bytes_per_day else None
    if row is not None and row.chat_bytes >= settings.chat_bytes_per_day * _SHARES[writing]:
        tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
        raise RateLimited(ceil((tomorrow - now).total_seconds()), "chats_full")


def count(session: TenantSession, *texts: str) -> None:
    """Count texts that this transaction writes."""
    if _COUNTED not in session.info:
        session.info[_COUNTED] = 0
        # Last of all, so that the tenant's other transactions wait for its row only during the commit.
        listen(session, "before_commit", _store)
    session.info[_COUNTED] += sum(len(text.encode()) for text in texts)


def _store(session: TenantSession) -> None:
    if session.in_nested_transaction():  # a savepoint is released: more texts may follow
        return
    row = session.locked(SpendingRow, day=datetime.now(UTC).date().isoformat(), usd=0.0)
    row.chat_bytes += session.info[_COUNTED]
    session.info[_COUNTED] = 0

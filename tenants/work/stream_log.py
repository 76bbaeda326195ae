"""Streams of turns shared by replicas, so that a client can resume at any replica.

Encrypted, and kept for an hour at most. A stream belongs to its caller: for all others it does not exist.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, insert, select

from settings import Settings
from tenants.core import context
from tenants.core.context import Tenant
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of
from tenants.storage.shared_tables import StreamEventRow, StreamRow

RETENTION = timedelta(hours=1)

_STREAM = "stream"


@dataclass(frozen=True, slots=True)
class LoggedStream:
    """A stream that a process runs, or ran.

    :param holder: the process, see `tenants.work.claims`.
    :param request_hash: of the request that it answers.
    """

    tenant_id: str
    turn_id: str
    owner: str
    holder: str
    request_hash: str


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event of a stream; its number counts from 1."""

    number: int
    name: str
    data: Mapping[str, object]


def append(
    streams: Sequence[LoggedStream], events: Sequence[tuple[LoggedStream, LoggedEvent]], settings: Settings
) -> None:
    """Add new streams and the next events of streams, of any tenants, in one transaction."""
    now = datetime.now(UTC)
    with database.across_tenants(settings, write=True) as session:
        if streams:
            session.execute(
                insert(StreamRow),
                [columns_of(one) | {"begun_at": now} for one in streams],
            )
        if events:
            session.execute(
                insert(StreamEventRow),
                [
                    {
                        "tenant_id": stream.tenant_id,
                        "turn_id": stream.turn_id,
                        "number": event.number,
                        "name": event.name,
                        "data": json.dumps(event.data, ensure_ascii=False),
                    }
                    for stream, event in events
                ],
            )


def find(turn_id: str) -> LoggedStream | None:
    """Return the caller's stream; None if it does not exist or belongs to another caller."""
    with database.reading() as session:
        row = session.find(StreamRow, turn_id)
        if row is None or row.owner != owner():
            return None
        return record_of(LoggedStream, row)


def events(turn_id: str, after: int) -> tuple[LoggedEvent, ...]:
    """Return the events of a stream of the tenant in context after number `after`, in order."""
    key = StreamEventRow.turn_id == turn_id
    query = select(StreamEventRow).where(key, StreamEventRow.number > after).order_by(StreamEventRow.number)
    with database.reading() as session:
        return tuple(LoggedEvent(row.number, row.name, json.loads(row.data)) for row in session.scalars(query))


def take_over(stream: LoggedStream, holder: str) -> bool:
    """Take over a stream whose process has died. Returns False if another process was faster."""
    with database.writing() as session:
        row = session.find(StreamRow, stream.turn_id, lock=True)
        if row is None or row.holder != stream.holder:
            return False
        row.holder = holder
        return True


def forget_old(now: datetime | None = None) -> None:
    """Drop the streams of all tenants after `RETENTION`."""
    with database.across_tenants(write=True) as session:
        session.execute(delete(StreamRow).where(StreamRow.begun_at < (now or datetime.now(UTC)) - RETENTION))


def erase(subject: str) -> None:
    """Drop the streams of a person of the tenant in context."""
    theirs = StreamRow.owner == Tenant(context.current().tenant_id, subject).key(_STREAM)
    with database.writing() as session:
        session.execute(delete(StreamRow).where(theirs))


def owner() -> str:
    """Return a digest of the caller as the owner of streams."""
    return context.current().key(_STREAM)

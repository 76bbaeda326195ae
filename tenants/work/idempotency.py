"""`Idempotency-Key`: a repeated request is processed once and gets the same answer.

Keys belong to tenant and subject, so one person's key never answers another. A key reserved by a process that died is
free again at once, and any after `ABANDONED`; an answer is kept for `RETENTION`.
"""

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy import select, tuple_

from tenants.core import context
from tenants.core.batches import batches
from tenants.core.errors import Busy, Clash, Invalid
from tenants.storage import database
from tenants.storage.sessions import TenantSession
from tenants.storage.tables import IdempotencyRow
from tenants.work import claims

RETENTION = timedelta(hours=24)
ABANDONED = timedelta(minutes=15)
MAX_KEY_LENGTH = 255
_ERASED_AT_ONCE = 100


def begin(key: str, request_hash: str) -> str | None:
    """Reserve the key, or return the answer that the same request already got.

    Raises `Invalid` with `idempotency_key_invalid` (empty, too long, not printable ASCII) or `idempotency_key_reused`
    (sent with a different request before), and `Busy` with `request_in_progress` while the first is being worked on.

    :param request_hash: of all that shapes the answer; at most 64 characters.
    """
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise Invalid("idempotency_key_invalid")
    process = claims.this_process()
    with Busy("request_in_progress").instead_of(Clash):
        row = _reserve(key, request_hash, process)
        # A replica of the version before names none: its requests are given up by time alone.
        if row is not None and row.answer is None and row.holder and not claims.is_alive(row.holder):
            row = _reserve(key, request_hash, process, after=row.holder)
    if row is not None and row.answer is None:
        raise Busy("request_in_progress")
    return None if row is None else row.answer


def _reserve(key: str, request_hash: str, process: str, *, after: str | None = None) -> IdempotencyRow | None:
    """Reserve the key for a process. Returns None on success, or the row of the current holder.

    :param after: the previous holder, which has died.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        row = session.find(IdempotencyRow, context.current().subject, key, lock=True)
        given_up = row is not None and row.answer is None and (row.holder == after or row.created_at < now - ABANDONED)
        if row is not None and (given_up or row.created_at < now - RETENTION):
            session.delete(row)
            session.flush()
            row = None
        if row is None:
            new = IdempotencyRow(subject=context.current().subject, key=key, request_hash=request_hash)
            new.holder, new.created_at = process, now
            session.add(new)
            return None
        if row.request_hash != request_hash:
            raise Invalid("idempotency_key_reused")
        return row


def finish(key: str, answer: str) -> None:
    """Store the answer for repetitions of the request."""
    process = claims.this_process()
    with database.writing() as session:
        row = session.find(IdempotencyRow, context.current().subject, key, lock=True)
        if row is not None and row.holder == process:
            row.answer = answer


def abandon(key: str) -> None:
    """Free the key: the request failed in a way that a retry may fix."""
    process = claims.this_process()
    with database.writing() as session:
        row = session.find(IdempotencyRow, context.current().subject, key, lock=True)
        if row is not None and row.answer is None and row.holder == process:
            session.delete(row)


def of_person(subject: str | None, session_id: str | None) -> tuple[str, ...]:
    """Return the answers stored for a person, for a session, or, given both, those that match both."""
    with database.reading() as session:
        return tuple(row.answer for row in _owned_by(session, subject, session_id) if row.answer)


def erase(subject: str | None, session_id: str | None) -> None:
    """Delete the same answers and their keys."""
    # Decrypted without the write lock of SQLite.
    with database.reading() as session:
        keys = [(row.subject, row.key) for row in _owned_by(session, subject, session_id)]
    for batch in batches(keys, _ERASED_AT_ONCE):
        with database.writing() as session:
            session.remove(IdempotencyRow, tuple_(IdempotencyRow.subject, IdempotencyRow.key).in_(batch))


def _owned_by(session: TenantSession, subject: str | None, session_id: str | None) -> list[IdempotencyRow]:
    query = select(IdempotencyRow)
    if subject is not None:
        query = query.where(IdempotencyRow.subject == subject)
    rows = session.scalars(query.execution_options(yield_per=_ERASED_AT_ONCE))
    # An answer says which session it belongs to; a day's worth of them is few enough to be read.
    return [row for row in rows if session_id is None or json.loads(row.answer or "{}").get("session_id") == session_id]

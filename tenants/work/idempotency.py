"""`Idempotency-Key`: a repeated request is processed once and gets the same answer.

Keys belong to tenant and subject, so one person's key never answers another. A key reserved by a process that died is
free again at once, and any after `ABANDONED`; an answer is kept for `RETENTION`.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeAlias

from sqlalchemy import select, tuple_

from tenants.core import context, fairness
from tenants.core.batches import batches, repeat
from tenants.core.errors import Busy, Clash, Invalid
from tenants.storage import database
from tenants.storage.tenant_session import TenantSession
from tenants.work import locks
from tenants.work.tables import IdempotencyRow

RETENTION = timedelta(hours=24)
ABANDONED = timedelta(minutes=15)
MAX_KEY_LENGTH = 255

AT_ONCE = 100
"""Answers that are decrypted, or deleted in one transaction, at once."""


_KEY = IdempotencyRow.subject, IdempotencyRow.key
_Key: TypeAlias = tuple[str, str]


def begin(key: str, request_hash: str) -> str | None:
    """Reserve the key, or return the answer that the same request already got.

    Raises `Invalid` with `idempotency_key_invalid` (empty, too long, not printable ASCII) or `idempotency_key_reused`
    (sent with a different request before), and `Busy` with `request_in_progress` while the first is being worked on.

    :param request_hash: of all that shapes the answer; at most 64 characters.
    """
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise Invalid("idempotency_key_invalid")
    process = locks.this_process()
    with Busy("request_in_progress").instead_of(Clash):
        row = _reserve(key, request_hash, process)
        # A replica of the version before names none: its requests are given up by time alone.
        if row is not None and row.answer is None and row.holder and not locks.is_alive(row.holder):
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
    process = locks.this_process()
    with database.writing() as session:
        row = session.find(IdempotencyRow, context.current().subject, key, lock=True)
        if row is not None and row.holder == process:
            row.answer = answer


def abandon(key: str) -> None:
    """Free the key: the request failed in a way that a retry may fix."""
    process = locks.this_process()
    with database.writing() as session:
        row = session.find(IdempotencyRow, context.current().subject, key, lock=True)
        if row is not None and row.answer is None and row.holder == process:
            session.delete(row)


def of_person(subject: str | None, session_id: str | None) -> tuple[str, ...]:
    """Return the answers stored for a person, for a session, or, given both, those that match both."""
    return tuple(answer for _, answer in _answers(subject, session_id))


def erase(subject: str | None, session_id: str | None) -> int:
    """Delete the same answers and their keys, in small transactions. Return the number of answers.

    Of a person without a session, the keys of requests in progress are deleted, too: their answers are not stored then.
    """
    if session_id is None:
        own = select(*_KEY).where(IdempotencyRow.subject == subject)
        return _erase_while(lambda session, most: [(row.subject, row.key) for row in session.execute(own.limit(most))])
    found = iter([key for key, _ in _answers(subject, session_id)])
    return _erase_while(lambda _, most: list(islice(found, most)))


def _erase_while(next_keys: Callable[[TenantSession, int], list[_Key]]) -> int:
    """Delete rows by their keys, batch by batch. Return how many had an answer.

    :param next_keys: returns up to so many keys.
    """
    answered = 0

    def erase_some(most: int) -> int:
        nonlocal answered
        with database.writing() as session:
            keys = next_keys(session, most)
            chosen = tuple_(*_KEY).in_(keys)
            answered += session.count(IdempotencyRow, chosen, IdempotencyRow.answer.is_not(None))
            session.remove(IdempotencyRow, chosen)
        return len(keys)

    repeat(erase_some, AT_ONCE)
    return answered


def _answers(subject: str | None, session_id: str | None) -> Iterator[tuple[_Key, str]]:
    """Yield the keys and answers of a person or a session.

    An answer says which session it belongs to, so a day's worth of them is decrypted, outside of transactions that
    write. The second look finds those that were stored during the first.
    """
    answered = select(*_KEY, IdempotencyRow.created_at).where(IdempotencyRow.answer.is_not(None))
    if subject is not None:
        answered = answered.where(IdempotencyRow.subject == subject)
    seen: set[tuple[str, str, datetime]] = set()
    for _ in range(2):
        with database.reading() as session:
            stored = [(row.subject, row.key, row.created_at) for row in session.execute(answered)]
        new = [key for key in stored if key not in seen]
        seen.update(new)
        for some in batches(new, AT_ONCE):
            fairness.yield_to_questions()
            chosen = tuple_(*_KEY).in_([key[:2] for key in some])
            with database.reading() as session:
                rows = session.execute(select(*_KEY, IdempotencyRow.answer).where(chosen)).all()
            for row in rows:
                if row.answer and (session_id is None or json.loads(row.answer).get("session_id") == session_id):
                    yield (row.subject, row.key), row.answer

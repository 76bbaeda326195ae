"""Searches and statistics over many rows of a tenant: they give way to questions. Long searches are given up.

Threat: no index helps a search for a part of a word. On SQLite it occupies a processor of this machine, and an operator
may repeat it in many tabs. So a tenant searches once at a time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import Any

from psycopg.errors import QueryCanceled
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from tenants.core import context, fairness
from tenants.core.errors import Busy, Invalid
from tenants.core.fair_semaphore import FairSemaphore
from tenants.storage import database
from tenants.storage.faults import sqlite_name
from tenants.storage.tenant_session import TenantSession, tell_server

SECONDS = 3
"""Time of a search: of the processor on SQLite, of the clock on PostgreSQL."""
_PATIENCE = 3
"""A search that gives way may take as many times longer by the clock."""
_INSTRUCTIONS = 4_000
"""Instructions of SQLite between two looks at the time: 0.2 ms, or 30 ms where each compares 10,000 letters."""
_AT_ONCE = FairSemaphore(2)
"""Searches of this process. A single holder has half of the permits at most, so each tenant has one."""


@contextmanager
def searching() -> Iterator[TenantSession]:
    """Open a session of the tenant in context to search in, once those before it have ended.

    :raises Invalid: `search_too_long`.
    :raises Busy: those before it take too long.
    """
    turn = _AT_ONCE.permit((context.current().tenant_id, "searches"), _PATIENCE * SECONDS, Busy)
    with turn, counting(SECONDS) as session, _given_up():
        tell_server(session.connection(), context.tenant_id(), SECONDS)
        yield session


@contextmanager
def counting(seconds: float = float("inf")) -> Iterator[TenantSession]:
    """Open a session of the tenant in context whose statements give way to questions, on SQLite also while they run.

    :param seconds: time of the processor, on SQLite, after which a statement is interrupted.
    """
    with database.reading() as session:
        event.listen(session, "do_orm_execute", lambda _: fairness.yield_to_questions())
        connection = session.connection()
        if connection.dialect.name != "sqlite":
            yield session
            return
        raw: Any = connection.connection.driver_connection
        end, latest = thread_time() + seconds, monotonic() + _PATIENCE * seconds

        def is_late() -> bool:
            # A reader keeps no question waiting, although it is in a transaction.
            fairness.yield_to_questions()
            return thread_time() > end or monotonic() > latest

        raw.set_progress_handler(is_late, _INSTRUCTIONS)
        try:
            yield session
        finally:
            raw.set_progress_handler(None, 0)


@contextmanager
def _given_up() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        if not isinstance(error.orig, QueryCanceled) and sqlite_name(error) != "SQLITE_INTERRUPT":
            raise
        raise Invalid("search_too_long") from error

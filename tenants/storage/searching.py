"""Searches through all texts of a tenant: they give way to questions, and are given up when they take long.

Threat: no index helps a search for a part of a word. On SQLite it occupies a processor of this machine, and an operator
may repeat it in many tabs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import Any

from psycopg.errors import QueryCanceled
from sqlalchemy.exc import OperationalError

from tenants.core import context, fairness
from tenants.core.errors import Invalid
from tenants.storage import database
from tenants.storage.faults import sqlite_name
from tenants.storage.sessions import TenantSession, tell_server

SECONDS = 3
"""Time of a search: of the processor on SQLite, of the clock on PostgreSQL."""
_PATIENCE = 3
"""A search that gives way may take as many times longer by the clock."""
_INSTRUCTIONS = 20_000
"""Instructions of SQLite between two looks at the time: about a millisecond."""


@contextmanager
def searching() -> Iterator[TenantSession]:
    """Open a session of the tenant in context to search in. Raises `Invalid`: `search_too_long`."""
    with database.reading() as session:
        connection = session.connection()
        if connection.dialect.name == "postgresql":
            tell_server(connection, context.tenant_id(), SECONDS)
            with _given_up():
                yield session
            return
        raw: Any = connection.connection.driver_connection
        end, latest = thread_time() + SECONDS, monotonic() + _PATIENCE * SECONDS

        def is_late() -> bool:
            # A reader keeps no question waiting, although it is in a transaction.
            fairness.yield_to_questions()
            return thread_time() > end or monotonic() > latest

        raw.set_progress_handler(is_late, _INSTRUCTIONS)
        try:
            with _given_up():
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

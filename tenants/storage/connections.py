"""Connections to PostgreSQL: given up when the server is silent, and shared when it grants too few.

A stopped process, a lost network behind a proxy: the server's own timeout of statements does not help then, the
network's timers see every packet acknowledged, and libpq waits for as long as it takes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout, _WaitTimeout
from psycopg.rows import TupleRow
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util.queue import Empty

T = TypeVar("T")

_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.05
"""Pause after the first attempt; it grows with each further one."""
_ATTEMPTS = 5
"""Attempts while no connection is in use: a server that is starting or down refuses all of them."""


class BoundedConnection(psycopg.Connection[TupleRow]):
    """Gives a statement up, and itself, after `seconds`; None: never."""

    seconds: float | None = None

    def wait(self, gen: PQGen[T], interval: float = _LOOK_SECONDS, timeout: float | None = None) -> T:
        """Wait for the result of a request. Raises `OperationalError` after the timeout."""
        try:
            return super().wait(gen, interval, self.seconds if timeout is None else timeout)
        except _WaitTimeout:
            if timeout is None:
                # The connection's state is unknown. A caller with its own timeout, who listens for notices, keeps it.
                self.pgconn.finish()
            raise

    def __del__(self, *_warn: object) -> None:
        """Close. SQLAlchemy drops a connection whose first statement has failed without closing it."""
        self.pgconn.finish()


@contextmanager
def patient(connection: object, limit: float | None = None) -> Iterator[None]:
    """Give the statements of a connection this many seconds while the block runs; None: no limit."""
    if not isinstance(connection, BoundedConnection):
        yield
        return
    seconds, connection.seconds = connection.seconds, limit
    try:
        yield
    finally:
        connection.seconds = seconds


class SharingPool(QueuePool):
    """Wait for a connection in use when the server refuses a further one."""

    def _do_get(self) -> ConnectionPoolEntry:
        ends_at = monotonic() + self._timeout
        for attempt in count(1):
            try:
                return super()._do_get()
            except ConnectionTimeout:
                raise
            except psycopg.OperationalError:
                # Several threads that connect at once may all be refused, because the server counts each of them.
                if monotonic() >= ends_at or (attempt >= _ATTEMPTS and not self.checkedout()):
                    raise
            try:
                return self._pool.get(block=True, timeout=_PAUSE_SECONDS * attempt)
            except Empty:
                continue
        raise AssertionError

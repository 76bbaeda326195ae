"""PostgreSQL connection with a timeout for a server that is connected but silent.

A stopped process, a lost network behind a proxy: the server's own timeout of statements does not help then, the
network's timers see every packet acknowledged, and libpq waits for as long as it takes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout
from psycopg.rows import TupleRow

T = TypeVar("T")

_LOOK_SECONDS = 0.1


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
def patient(connection: object) -> Iterator[None]:
    """Remove the time limit from the statements of a connection."""
    if not isinstance(connection, BoundedConnection):
        yield
        return
    seconds, connection.seconds = connection.seconds, None
    try:
        yield
    finally:
        connection.seconds = seconds

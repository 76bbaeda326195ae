"""Connection pool for a server that grants fewer connections than a process may use."""

from itertools import count
from time import monotonic

import psycopg
from psycopg.errors import ConnectionTimeout
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util.queue import Empty

_PAUSE_SECONDS = 0.05
"""Pause after the first attempt; it grows with each further one."""
_ATTEMPTS = 5
"""Attempts while no connection is in use: a server that is starting or down refuses all of them."""


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

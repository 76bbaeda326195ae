"""Connection pool for a server that grants fewer connections than a process may use."""

import psycopg
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.util.queue import Empty


class SharingPool(QueuePool):
    """Wait for a connection in use when the server refuses a further one."""

    def _do_get(self) -> ConnectionPoolEntry:
        try:
            return super()._do_get()
        except psycopg.OperationalError:
            if not self.checkedout():
                raise
            try:
                return self._pool.get(block=True, timeout=self._timeout)
            except Empty:
                pass
            raise

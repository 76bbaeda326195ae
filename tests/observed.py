"""PostgreSQL behind PgBouncer, with the statements and connections that they see."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import psycopg
from sqlalchemy import URL, make_url

from tests import servers


class Observer:
    """Looks at PostgreSQL and PgBouncer from outside."""

    def __init__(self, direct: URL, pooled: URL) -> None:
        self._server = psycopg.connect(_parameters(direct), autocommit=True)
        self._server.execute("CREATE EXTENSION pg_stat_statements")
        console = _parameters(pooled.set(database="pgbouncer"))
        self._pooler = psycopg.connect(console, autocommit=True, cursor_factory=psycopg.ClientCursor)

    def statements(self, seconds: float) -> list[tuple[float, str]]:
        """Return the statements of this time and how often a second each was made, the most frequent first."""
        self._server.execute("SELECT pg_stat_statements_reset()")
        Event().wait(seconds)
        query = "SELECT calls, query FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"
        return sorted(((int(calls) / seconds, str(text)) for calls, text in self._server.execute(query)), reverse=True)

    def workers(self) -> int:
        """Return the number of registered workers."""
        return len(self._server.execute("SELECT id FROM procrastinate_workers").fetchall())

    def database_mb(self) -> float:
        """Return the size of the database, with its indexes."""
        row = self._server.execute("SELECT pg_database_size(current_database())").fetchone()
        return round(row[0] / 1e6, 1) if row else 0.0

    def connections(self) -> dict[int, int]:
        """Return the number of connections of each process to PgBouncer."""
        cursor = self._pooler.execute("SHOW CLIENTS")
        at = [column.name for column in cursor.description or ()].index("remote_pid")
        pids = [int(row[at]) for row in cursor]
        return {pid: pids.count(pid) for pid in pids}


def _parameters(url: URL) -> str:
    return f"host={url.query['host']} port={url.query.get('port', 5432)} user=opora dbname={url.database}"


@contextmanager
def postgres() -> Iterator[tuple[str, Observer]]:
    """Yield the URL of an empty database behind PgBouncer, and its observer."""
    with (
        servers.postgres(shared_preload_libraries="pg_stat_statements") as server,
        servers.pgbouncer(server, pool_size=20) as pooled,
        servers.own_database(server) as url,
    ):
        behind = pooled(url)
        yield behind.render_as_string(), Observer(make_url(server).set(database=url.database), behind)

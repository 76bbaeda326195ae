"""Idle load, connections, memory and start of two replicas and two workers, for a growing number of tenants.

`python -m evaluation.benchmarks.scale idle --tenants 6 200` starts PostgreSQL, PgBouncer and Redis of this machine, and
a fake of Qdrant's server. Before the load is measured, each tenant imports an article and asks at each replica.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
from rich.console import Console
from rich.table import Table
from sqlalchemy import URL, make_url

from evaluation.benchmarks import replicas
from evaluation.benchmarks.replicas import Installation, Replica, Stores
from settings import get_settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES

_AT_ONCE = 16
_SETTLE_SECONDS = 10.0
_STATEMENTS = 12
_ARTICLE = {"doc_id": "e10.md", "title": "E10", "text": "## E10\n\nКод E10 означает, что вода не сливается.\n"}
_QUESTION = "Что означает код E10?"


@dataclass(frozen=True, slots=True)
class Idle:
    """An installation of so many tenants while nobody asks.

    :ivar statements: a second, of all processes, `BEGIN` and `COMMIT` included.
    :ivar connections: the most that one process had open to PgBouncer under load before.
    :ivar replica_mb, worker_mb: the largest resident memory.
    """

    tenants: int
    statements: float
    transactions: float
    connections: int
    replica_mb: int
    worker_mb: int


class Observer:
    """Looks at PostgreSQL and PgBouncer from outside."""

    def __init__(self, direct: URL, pooled: URL) -> None:
        self._server = psycopg.connect(_parameters(direct), autocommit=True)
        self._server.execute("CREATE EXTENSION pg_stat_statements")
        console = _parameters(pooled.set(database="pgbouncer"))
        self._pooler = psycopg.connect(console, autocommit=True, cursor_factory=psycopg.ClientCursor)

    def idle(self, seconds: float) -> tuple[float, float, list[tuple[float, str]]]:
        """Return statements and transactions a second, and the most frequent statements."""
        self._server.execute("SELECT pg_stat_statements_reset()")
        time.sleep(seconds)
        query = "SELECT calls, query FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"
        rows = sorted(((int(calls) / seconds, str(text)) for calls, text in self._server.execute(query)), reverse=True)
        ends = sum(rate for rate, text in rows if text.startswith(("COMMIT", "ROLLBACK")))
        alone = sum(rate for rate, text in rows if "procrastinate" in text)
        return sum(rate for rate, _ in rows), ends + alone, rows[:_STATEMENTS]

    def connections(self) -> dict[int, int]:
        """Return the number of connections of each process to PgBouncer."""
        cursor = self._pooler.execute("SHOW CLIENTS")
        at = [column.name for column in cursor.description or ()].index("remote_pid")
        pids = [int(row[at]) for row in cursor]
        return {pid: pids.count(pid) for pid in pids}


def _parameters(url: URL) -> str:
    return f"host={url.query['host']} port={url.query.get('port', 5432)} user=opora dbname={url.database}"


@contextmanager
def installation(place: Path) -> Iterator[tuple[Installation, Observer]]:
    """Run all servers, two replicas and two workers."""
    from tests import fake_qdrant, servers  # of the checkout; a wheel has none

    with ExitStack() as stack:
        server = stack.enter_context(servers.postgres(shared_preload_libraries="pg_stat_statements"))
        pooled: Callable[[URL], URL] = stack.enter_context(servers.pgbouncer(server, pool_size=20))
        url = stack.enter_context(servers.own_database(server))
        redis_url = stack.enter_context(servers.redis())
        behind = pooled(url)
        stores = Stores(behind.render_as_string(), redis_url, stack.enter_context(fake_qdrant.running()))
        observer = Observer(make_url(server).set(database=url.database), behind)
        stack.enter_context(replicas.sharing(stores, place))
        yield stack.enter_context(replicas.serving(stores, place)), observer


def grow(running: Installation, tenants: Sequence[str]) -> None:
    """Add tenants; each imports an article and asks at each replica."""

    def touch(tenant_id: str) -> None:
        Registry().add(tenant_id)
        token = issue(get_settings(), tenant_id, scopes=SCOPES, subject="bench", ttl_seconds=36_000)
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=120) as client:
            client.post(f"{running.replicas[0].url}/ingest/run", json={"documents": [_ARTICLE]}).raise_for_status()
            for replica in running.replicas:
                client.post(f"{replica.url}/ask/run", json={"question": _QUESTION}).raise_for_status()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(touch, tenants))


def peak_connections(running: Installation, observer: Observer, seconds: float) -> int:
    """Ask `_AT_ONCE` questions at a time, and return the most connections that a process has open meanwhile."""
    until = time.monotonic() + seconds

    def ask(number: int) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {running.token}"}, timeout=120) as client:
            while time.monotonic() < until:
                url = running.replicas[number % 2].url
                client.post(f"{url}/ask/run", json={"question": f"{_QUESTION} {number}"}).raise_for_status()

    most = 0
    own = {process.pid for process in (*running.replicas, *running.workers)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asking = [pool.submit(ask, number) for number in range(_AT_ONCE)]
        while time.monotonic() < until:
            most = max(most, *(count for pid, count in observer.connections().items() if pid in own))
            time.sleep(0.2)
        for one in asking:
            one.result()
    return most


def _resident_mb(process: Replica) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024 // 1_000_000


def start_seconds(replica: Replica) -> float:
    """Restart a replica, and return the seconds until it is ready."""
    replica.end(signal.SIGTERM)
    begun = time.monotonic()
    replica.launch()
    replica.await_ready()
    return time.monotonic() - begun


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["idle"])
    parser.add_argument("--tenants", type=int, nargs="+", default=[6, 50])
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    measured: list[Idle] = []
    with TemporaryDirectory() as folder, installation(Path(folder)) as (running, observer):
        for count in arguments.tenants:
            grow(running, [f"t{number}" for number in range(measured[-1].tenants if measured else 2, count)])
            most = peak_connections(running, observer, seconds=10.0)
            time.sleep(_SETTLE_SECONDS)
            statements, transactions, frequent = observer.idle(arguments.seconds)
            memory = [max(map(_resident_mb, kind)) for kind in (running.replicas, running.workers)]
            measured.append(Idle(count, round(statements, 1), round(transactions, 1), most, *memory))
        started = start_seconds(running.replicas[1])
    console = Console(stderr=True)
    table = Table(*Idle.__dataclass_fields__)
    for one in measured:
        table.add_row(*map(str, asdict(one).values()))
    console.print(table)
    for rate, text in frequent:
        console.print(f"{rate:6.2f}/s {' '.join(text.split())[:150]}", markup=False)
    result = {"schema": "scale.v1", "idle": [asdict(one) for one in measured], "start_seconds": round(started, 1)}
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

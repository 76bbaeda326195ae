"""Two replicas and two workers behind PgBouncer, idle and at work.

`python -m evaluation.benchmarks.scale idle 10 1000` measures idle load, connections, memory, start and questions for a
growing number of tenants; each imports an article and asks at each replica before. `python -m
evaluation.benchmarks.scale work` imports for a large and a small tenant at once, lets a worker join, and kills each
process in turn under load, as `evaluation.benchmarks.replicas` does. Both start PostgreSQL, PgBouncer and Redis of this
machine, and a fake of Qdrant's server.
"""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import httpx
import typer

from evaluation.benchmarks import replicas, results
from evaluation.benchmarks.load import percentile
from evaluation.benchmarks.replicas import Installation, Replica, Stores
from evaluation.benchmarks.server import resident_mb
from settings import get_settings
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as

if TYPE_CHECKING:
    from tests.observed import Observer

SCHEMA = "scale.v2"
_AT_ONCE = 16
_LOAD_SECONDS = 20.0
_SETTLE_SECONDS = 10.0
_STATEMENTS = 12
_SECTIONS = 20
"""Chunks of a page."""

_ARTICLE = {"doc_id": "e10.md", "title": "E10", "text": "## E10\n\nКод E10 означает, что вода не сливается.\n"}
_QUESTION = "Что означает код E10?"


@dataclass(frozen=True, slots=True)
class Idle:
    """An installation without requests.

    :ivar statements: a second, of all processes, `BEGIN` and `COMMIT` included.
    :ivar connections: the most that one process had open to PgBouncer under load before.
    :ivar p95_ms: of the questions of that load, asked as each tenant in turn.
    :ivar replica_mb, worker_mb: the largest resident memory.
    """

    tenants: int
    statements: float
    connections: int
    p95_ms: int
    replica_mb: int
    worker_mb: int


@contextmanager
def installation(place: Path) -> Iterator[tuple[Installation, "Observer"]]:
    """Run all servers, two replicas and two workers."""
    from tests import fake_qdrant, observed, servers  # of the checkout; a wheel has none

    with (
        observed.postgres() as (database_url, observer),
        servers.redis() as redis_url,
        fake_qdrant.running() as qdrant_url,
    ):
        stores = Stores(database_url, redis_url, qdrant_url)
        with replicas.sharing(stores, place), replicas.serving(stores, place) as running:
            yield running, observer


def _client(replica: Replica, tenant_id: str) -> httpx.Client:
    """Add a tenant without limits and return a client for it."""
    Registry().add(tenant_id)
    with acting_as(Tenant(tenant_id, "bench")):
        policy.change(rate_limit_per_minute=0, rate_limit_per_day=0)
    return httpx.Client(base_url=replica.url, headers=_headers(tenant_id), timeout=120)


def _headers(tenant_id: str) -> dict[str, str]:
    token = issue(get_settings(), tenant_id, scopes=SCOPES, subject="bench", ttl_seconds=36_000)
    return {"Authorization": f"Bearer {token}"}


def grow(running: Installation, tenants: Sequence[str]) -> None:
    """Add tenants; each imports an article and asks at each replica."""

    def touch(tenant_id: str) -> None:
        with _client(running.replicas[0], tenant_id) as client:
            client.post("/ingest/run", json={"documents": [_ARTICLE]}).raise_for_status()
            for replica in running.replicas:
                client.post(f"{replica.url}/ask/run", json={"question": _QUESTION}).raise_for_status()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(touch, tenants))


def load(running: Installation, observer: "Observer", tenants: Sequence[str]) -> tuple[int, int]:
    """Ask `_AT_ONCE` questions at a time, as each tenant in turn.

    :returns: the most connections that a process has open meanwhile, and the 95th percentile of the milliseconds.
    """
    headers = [_headers(tenant_id) for tenant_id in tenants]
    until = time.monotonic() + _LOAD_SECONDS
    spent: list[float] = []

    def ask(number: int) -> None:
        url = f"{running.replicas[number % 2].url}/ask/run"
        with httpx.Client(timeout=120) as client:
            for at in count(number, _AT_ONCE):
                if (began := time.monotonic()) >= until:
                    return
                question = {"question": f"{_QUESTION} {at}"}
                client.post(url, json=question, headers=headers[at % len(headers)]).raise_for_status()
                spent.append(1_000 * (time.monotonic() - began))

    peak = 0
    own = {process.pid for process in (*running.replicas, *running.workers)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asking = [pool.submit(ask, number) for number in range(_AT_ONCE)]
        while time.monotonic() < until:
            peak = max(peak, *(number for pid, number in observer.connections().items() if pid in own))
            time.sleep(0.2)
        for one in asking:
            one.result()
    return peak, round(percentile(spent, 95))


def _start_seconds(replica: Replica) -> float:
    replica.end(signal.SIGTERM)
    begun = time.monotonic()
    replica.launch()
    replica.await_ready()
    return round(time.monotonic() - begun, 1)


def measure(running: Installation, observer: "Observer", sizes: Sequence[int], seconds: float) -> dict[str, object]:
    """Measure with each of these numbers of tenants, and print the most frequent statements of the last one."""
    measured: list[Idle] = []
    tenants: list[str] = []
    statements: list[tuple[float, str]] = []
    for size in sizes:
        # There are two already.
        more = [f"t{number}" for number in range(len(tenants) + 2, size)]
        grow(running, more)
        tenants += more
        peak, p95_ms = load(running, observer, tenants)
        time.sleep(_SETTLE_SECONDS)
        statements = observer.statements(seconds)
        memory = [max(round(resident_mb(one.pid)) for one in kind) for kind in (running.replicas, running.workers)]
        measured.append(Idle(size, round(sum(rate for rate, _ in statements), 1), peak, p95_ms, *memory))
    for rate, text in statements[:_STATEMENTS]:
        sys.stderr.write(f"{rate:6.2f}/s {' '.join(text.split())[:120]}\n")
    return {"idle": [asdict(one) for one in measured], "start_seconds": _start_seconds(running.replicas[1])}


def imports(running: Installation, observer: "Observer", chunks: int) -> dict[str, float | str]:
    """Import a page of one tenant while another one imports many chunks; then let a worker join.

    :returns: seconds that each import took, and from the registration of a new worker to its first job.
    """
    large, small = (_client(running.replicas[0], tenant_id) for tenant_id in ("large", "small"))
    pages = [(f"{number}.md", _page(number)) for number in range(chunks // _SECTIONS)]
    begun = time.monotonic()
    import_of_large = _upload(large, pages)
    _await_state(large, import_of_large, "running")
    began = time.monotonic()
    _await_state(small, _upload(small, pages[:1]), "done")
    seconds: dict[str, float | str] = {"small_import": round(time.monotonic() - began, 1)}
    seconds["large_import_meanwhile"] = _await_state(large, import_of_large, "running", "done")
    _await_state(large, import_of_large, "done")
    seconds["large_import"] = round(time.monotonic() - begun, 1)
    for worker in running.workers:
        worker.end(signal.SIGTERM)
    job = _upload(small, pages[1:2])
    running.workers[0].launch()
    while not observer.workers():
        time.sleep(0.02)
    began = time.monotonic()
    _await_state(small, job, "running", "done")
    running.workers[1].launch()
    return {**seconds, "worker_joins": round(time.monotonic() - began, 1)}


def _page(number: int) -> bytes:
    codes = [f"Код E{number}-{at}" for at in range(_SECTIONS)]
    sections = (f"## {code}\n\n{f'{code}: вода не сливается. ' * 12}\n" for code in codes)
    return f"# Страница {number}\n\n{''.join(sections)}".encode()


def _upload(client: httpx.Client, pages: Sequence[tuple[str, bytes]]) -> str:
    reply = client.post("/documents", files=[("files", page) for page in pages]).raise_for_status()
    return str(reply.json()["job_id"])


def _await_state(client: httpx.Client, job_id: str, *states: str) -> str:
    while (state := client.get(f"/jobs/{job_id}").raise_for_status().json()["state"]) not in states:
        time.sleep(0.2)
    return str(state)


def idle(
    tenants: Annotated[list[int], typer.Argument(help="Numbers of tenants, growing.", min=3)],
    seconds: Annotated[float, typer.Option(help="How long to count statements.")] = 60.0,
) -> None:
    """Measure idle load, connections, memory, start and questions."""
    with TemporaryDirectory() as folder, installation(Path(folder)) as (running, observer):
        result = measure(running, observer, tenants, seconds)
    results.end({"schema": SCHEMA, **result}, failed=False)


def work(
    chunks: Annotated[int, typer.Option(help="Size of the large import.")] = 2_000,
    seconds: Annotated[float, typer.Option(help="How long to ask while processes are killed.")] = 60.0,
) -> None:
    """Import for a large and a small tenant, and kill each process under load."""
    with TemporaryDirectory() as folder, installation(Path(folder)) as (running, observer):
        imported = imports(running, observer, chunks)
        counts = replicas.run(running, seconds=seconds, askers=4, kills=4)
    results.end({"schema": SCHEMA, **imported, **asdict(counts)}, failed=False)


app = typer.Typer()
app.command()(idle)
app.command()(work)

if __name__ == "__main__":
    app()

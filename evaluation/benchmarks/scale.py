"""Two replicas and two workers behind PgBouncer: what grows with the tenants, and what a killed process costs.

`python -m evaluation.benchmarks.scale` starts PostgreSQL, PgBouncer and Redis of this machine and a fake of Qdrant's
server. It measures questions with few tenants and with many, each of which imports an article and asks at each replica
before; then the start, memory, idle load and connections with many; the import of a page beside a large one; a worker
that joins; and what is lost when each process is killed in turn under load, as `evaluation.benchmarks.replicas` does.
It prints the table of docs/operate/scale.md, and ends with exit code 1 if a target is missed. Some ten minutes on two
processors; `--few 3 --tenants 20 --chunks 2000 --seconds 20` tries it out in two.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import httpx
import typer

from evaluation.benchmarks import replicas, results
from evaluation.benchmarks.load import percentile
from evaluation.benchmarks.replicas import Installation, Replica, Stores
from evaluation.benchmarks.server import resident_mb, token_for
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import documents

if TYPE_CHECKING:
    from tests.observed import Observer

SCHEMA = "scale.v4"
_AT_ONCE = 16
_LOAD_SECONDS = 20.0
_SETTLE_SECONDS = 10.0
_STATEMENTS = 12
_BUSY_SECONDS = 5.0
"""Time of the large import before the small one."""

_SECTIONS = 20

_ARTICLE = {"doc_id": "e10.md", "title": "E10", "text": "## E10\n\nКод E10 означает, что вода не сливается.\n"}
_QUESTION = "Что означает код E10?"


TARGETS: Mapping[str, float] = {
    "question_p95_ratio": 1.3,
    "start_seconds": 10,
    "replica_mb": 1_200,
    "worker_mb": 1_200,
    "idle_statements_per_second": 20,
    "connections_of_a_process": 8,
    "small_import_seconds": 5,
    "worker_joins_seconds": 2,
    **dict.fromkeys(replicas.FAULTS, 0),
}


@contextmanager
def installation(place: Path) -> Iterator[tuple[Installation, "Observer"]]:
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
    Registry().add(tenant_id)
    with acting_as(Tenant(tenant_id, "bench")):
        policy.change(rate_limit_per_minute=0, rate_limit_per_day=0)
    return httpx.Client(base_url=replica.url, headers=_headers(tenant_id), timeout=120)


def _headers(tenant_id: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_for(tenant_id, *SCOPES)}"}


def grow(running: Installation, tenants: Sequence[str]) -> None:
    def touch(tenant_id: str) -> None:
        with _client(running.replicas[0], tenant_id) as client:
            client.post("/ingest/run", json={"documents": [_ARTICLE]}).raise_for_status()
            for replica in running.replicas:
                client.post(f"{replica.url}/ask/run", json={"question": _QUESTION}).raise_for_status()

    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        for number, _ in enumerate(pool.map(touch, tenants), start=1):
            if number % 50 == 0 or number == len(tenants):
                sys.stderr.write(f"{number} of {len(tenants)} tenants in {time.monotonic() - begun:.0f} s\n")


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


def _size(running: Installation, observer: "Observer", suffix: str = "") -> dict[str, float]:
    """Return the megabytes that the largest replica and worker have in memory, and the database on disk."""
    replica, worker = (max(round(resident_mb(one.pid)) for one in kind) for kind in (running.replicas, running.workers))
    figures = {"replica_mb": replica, "worker_mb": worker, "database_mb": observer.database_mb()}
    return {f"{name}{suffix}": figure for name, figure in figures.items()}


def compare(running: Installation, observer: "Observer", few: int, tenants: int, seconds: float) -> dict[str, float]:
    """Measure with few tenants, then with many, and print the most frequent statements of an idle installation."""
    # There are two already.
    names = [f"t{number}" for number in range(2, tenants)]
    grow(running, names[: few - 2])
    _, few_p95 = load(running, observer, names[: few - 2])
    size_with_few = _size(running, observer, "_with_few")
    grow(running, names[few - 2 :])
    peak, p95 = load(running, observer, names)
    size = _size(running, observer)
    time.sleep(_SETTLE_SECONDS)
    statements = observer.statements(seconds)
    for rate, statement in statements[:_STATEMENTS]:
        sys.stderr.write(f"{rate:6.2f}/s {' '.join(statement.split())[:120]}\n")
    return {
        "question_p95_ms_with_few": few_p95,
        "question_p95_ms": p95,
        "question_p95_ratio": round(p95 / few_p95, 2),
        "start_seconds": _start_seconds(running.replicas[1]),
        **size_with_few,
        **size,
        "idle_statements_per_second": round(sum(rate for rate, _ in statements), 1),
        "connections_of_a_process": peak,
    }


def imports(running: Installation, observer: "Observer", chunks: int) -> dict[str, float]:
    """Import a page of one tenant while another one imports many chunks; then let a worker join.

    :returns: chunks of the large import that were left when the small one had ended, and the seconds from the upload of
        the page to its end, and from the registration of a new worker to its first job.
    """
    large, small = (_client(running.replicas[0], tenant_id) for tenant_id in ("large", "small"))
    pages = [(f"{number}.md", _page(number)) for number in range(chunks // _SECTIONS)]
    import_of_large = _upload(large, pages)
    _await_state(large, import_of_large, "running")
    time.sleep(_BUSY_SECONDS)
    began = time.monotonic()
    _await_state(small, _upload(small, pages[:1]), "done")
    spent = round(time.monotonic() - began, 1)
    with acting_as(Tenant("large", "bench")):
        left = len(pages) - len(documents.all())
    large.delete(f"/jobs/{import_of_large}").raise_for_status()
    _await_state(large, import_of_large, "cancelled", "done")
    for worker in running.workers:
        worker.end(signal.SIGTERM)
    job = _upload(small, pages[1:2])
    running.workers[0].launch()
    while not observer.workers():
        time.sleep(0.02)
    began = time.monotonic()
    _await_state(small, job, "running", "done")
    joined = round(time.monotonic() - began, 1)
    running.workers[1].launch()
    return {
        "large_import_chunks_left": left * _SECTIONS,
        "small_import_seconds": spent,
        "worker_joins_seconds": joined,
    }


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


def main(
    few: Annotated[int, typer.Option(help="Number of tenants to compare with.", min=3)] = 10,
    tenants: Annotated[int, typer.Option(help="Number of tenants.", min=4)] = 1_000,
    chunks: Annotated[int, typer.Option(help="Size of the large import.")] = 20_000,
    seconds: Annotated[float, typer.Option(help="Time of the idle load, and of the load with kills.")] = 60.0,
) -> None:
    """Run, print, compare with the targets."""
    begun, load_before = time.monotonic(), round(os.getloadavg()[0], 1)
    with TemporaryDirectory() as folder, installation(Path(folder)) as (running, observer):
        figures: dict[str, float] = {"tenants": tenants, "processors": os.cpu_count() or 0, "load_before": load_before}
        figures |= compare(running, observer, few, tenants, seconds)
        figures |= imports(running, observer, chunks)
        figures |= asdict(replicas.run(running, seconds=seconds, askers=4, kills=4))
        figures["minutes"] = round((time.monotonic() - begun) / 60, 1)
        # Before the servers end: if one of them hangs, the figures are not lost.
        results.finish(SCHEMA, figures, title="Two replicas, two workers", bounds=TARGETS)


if __name__ == "__main__":
    typer.run(main)

"""`python -m evaluation.bench_fairness`: what one tenant's bulk load costs another tenant's questions and jobs.

A real service, a knowledge base of some 10,000 chunks. Questions are put one after another, at once and with pauses,
while nothing else goes on and while another tenant uploads the same knowledge base again and again. A third
tenant uploads one article meanwhile. A table goes to standard error, the same as JSON to standard output; the exit code
is 1 when the median question takes more than twice as long as without the load.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Event, Thread

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from components.ingest.document import SourceDocument
from evaluation import workspace
from evaluation.datasets import vkcloud
from evaluation.load import Client
from evaluation.rows import DATA, Absent
from evaluation.server import Served, serving
from settings import get_settings
from tenants import claims, database, index
from tenants.context import SCOPES
from tenants.registry import Registry
from tenants.tokens import issue

ARTICLES_PER_UPLOAD = 300
ROUNDS = 3
WARM_UP = 40
PAUSES = {"at once": 0.0, "paused": 0.1}
MOST_SLOWDOWN = 2.0
_OPEN = ("queued", "running")


@dataclass(frozen=True, slots=True)
class Line:
    """One way of asking: milliseconds per question without and with the load."""

    alone_p50: float
    alone_p99: float
    loaded_p50: float
    loaded_p99: float

    @property
    def slowdown(self) -> float:
        """How many times longer the median question takes."""
        return self.loaded_p50 / self.alone_p50


@dataclass(frozen=True, slots=True)
class Underway:
    """A job as the service tells of it."""

    job_id: str
    open: bool
    chunks: int


class Loader:
    """A tenant that uploads articles until it is told to stop, never more than two jobs ahead."""

    def __init__(self, served: Served, tenant_id: str, articles: Sequence[SourceDocument]) -> None:
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{served.port}",
            headers={"Authorization": f"Bearer {_token(tenant_id)}"},
            timeout=120,
        )
        self._articles = articles
        self._stop = Event()
        self._thread = Thread(target=self._run)
        self._numbers = count()

    def start(self) -> None:
        """Begin, and wait until the first job is in work."""
        self._thread.start()
        while not self.chunks():
            time.sleep(0.1)

    def stop(self) -> None:
        """Cancel what is left."""
        self._stop.set()
        self._thread.join()
        for job in self._jobs():
            self._client.delete(f"/jobs/{job.job_id}")
        self._client.close()

    def chunks(self) -> int:
        """How many have been written so far."""
        return sum(job.chunks for job in self._jobs())

    def upload(self, articles: Sequence[SourceDocument]) -> str:
        """One job."""
        number = next(self._numbers)
        lines = (
            json.dumps({"doc_id": f"{number}/{one.doc_id}", "title": one.title, "text": one.text}, ensure_ascii=False)
            for one in articles
        )
        reply = self._client.post("/documents", params={"name": f"{number}.jsonl"}, content="\n".join(lines).encode())
        reply.raise_for_status()
        return str(reply.json()["job_id"])

    def await_end(self, job_id: str) -> float:
        """Seconds until a job has ended."""
        started = time.monotonic()
        while self._client.get(f"/jobs/{job_id}").json()["state"] in _OPEN:
            time.sleep(0.02)
        return time.monotonic() - started

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            for start in range(0, len(self._articles), ARTICLES_PER_UPLOAD):
                while not self._stop.is_set() and sum(job.open for job in self._jobs()) >= 2:
                    self._stop.wait(0.2)
                if self._stop.is_set():
                    return
                self.upload(self._articles[start : start + ARTICLES_PER_UPLOAD])

    def _jobs(self) -> list[Underway]:
        listed = self._client.get("/jobs", params={"limit": 100}).json()["jobs"]
        return [Underway(one["job_id"], one["state"] in _OPEN, one["progress"].get("chunks", 0)) for one in listed]


def main() -> int:
    """Measure and print."""
    console = Console(stderr=True)
    try:
        chosen = vkcloud(DATA, "ru")[0]
    except Absent as absent:
        console.print(f"{absent.path} is absent")
        return 1
    folder = workspace.enter(get_settings().data_dir.resolve() / "bench-fairness")
    asker = workspace.tenant_for(chosen.corpus, lambda *_: None)
    loader, third = f"loader-{time.time_ns()}", f"third-{time.time_ns()}"
    for tenant_id in (loader, third):
        Registry().add(tenant_id)
    asked = [case.question for case in chosen.cases]
    articles = list(chosen.corpus.documents())
    _let_go()
    with serving(folder) as served:
        result = measure(served, (asker.tenant_id, loader, third), asked, articles)
    _print(console, result)
    return 0 if result["met"] else 1


def measure(
    served: Served, tenant_ids: tuple[str, str, str], asked: Sequence[str], articles: Sequence[SourceDocument]
) -> dict[str, object]:
    """All figures, for a program."""
    asker, loader, third = tenant_ids
    token = _token(asker)
    _ask(served, token, asked[:WARM_UP], 0.0)
    alone = {name: _ask(served, token, list(asked) * ROUNDS, pause) for name, pause in PAUSES.items()}
    with _loading(served, loader, articles) as load:
        before, started = load.chunks(), time.monotonic()
        loaded = {name: _ask(served, token, list(asked) * ROUNDS, pause) for name, pause in PAUSES.items()}
        speed = (load.chunks() - before) / (time.monotonic() - started)
        before, started = load.chunks(), time.monotonic()
        time.sleep(10)
        unasked = (load.chunks() - before) / (time.monotonic() - started)
        small = Loader(served, third, ())
        waited = small.await_end(small.upload(articles[:1]))
        small.close()
    lines = {name: Line(*_percentiles(alone[name]), *_percentiles(loaded[name])) for name in PAUSES}
    return {
        "schema": "fairness.v1",
        "questions": {
            name: {
                "alone_ms_p50": line.alone_p50,
                "alone_ms_p99": line.alone_p99,
                "loaded_ms_p50": line.loaded_p50,
                "loaded_ms_p99": line.loaded_p99,
                "slowdown_p50": line.slowdown,
            }
            for name, line in lines.items()
        },
        "chunks_per_second_while_asked": speed,
        "chunks_per_second_unasked": unasked,
        "seconds_until_anothers_small_job_is_done": waited,
        "met": all(line.slowdown <= MOST_SLOWDOWN for line in lines.values()),
    }


@contextmanager
def _loading(served: Served, tenant_id: str, articles: Sequence[SourceDocument]) -> Iterator[Loader]:
    load = Loader(served, tenant_id, articles)
    load.start()
    try:
        yield load
    finally:
        load.stop()


def _ask(served: Served, token: str, asked: Sequence[str], pause: float) -> list[float]:
    client = Client(served.port, token)
    spent = []
    for question in asked:
        reply = client.ask(question)
        if reply.failed:
            raise RuntimeError(reply)
        spent.append(reply.milliseconds)
        time.sleep(pause)
    client.close()
    return spent


def _percentiles(milliseconds: Sequence[float]) -> tuple[float, float]:
    return float(np.percentile(milliseconds, 50)), float(np.percentile(milliseconds, 99))


def _token(tenant_id: str) -> str:
    return issue(get_settings(), tenant_id, scopes=SCOPES, subject="bench", ttl_seconds=36_000)


def _let_go() -> None:
    claims.close_all()
    index.close_all()
    database.close_all()


def _print(console: Console, result: Mapping[str, object]) -> None:
    table = Table("figure", "value")
    for name, value in result.items():
        table.add_row(name, json.dumps(value, indent=1))
    console.print(table)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())

"""`python -m evaluation.bench_rebuild`: questions to a real service while its index is rebuilt, switched, rolled back.

People ask all the time, with a pause between two questions. Meanwhile the vkcloud index is rebuilt and rolled back
over HTTP, again and again until enough questions were asked. As the encoder stays the same, every question must end as
it did before. A table goes to standard error, the same as JSON to standard output; the exit code is 1 when anything
failed or came back empty.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from threading import Event, Lock

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation import workspace
from evaluation.datasets import vkcloud
from evaluation.load import Client, Reply, alone
from evaluation.rows import DATA, Absent
from evaluation.server import Served, serving
from settings import get_settings
from tenants import database, index
from tenants.context import SCOPES, Tenant
from tenants.tokens import issue

CLIENTS = 2
QUESTIONS = 2_000
PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Measured:
    """What was asked and what came of it.

    :param empty: questions that were answered before and not now.
    :param changed: questions that ended otherwise than before, in whatever way.
    :param rebuilds: how often the index was rebuilt meanwhile, and rolled back as often.
    :param idle_ms_p50: while nothing else went on, asked by one; `ms_p50`, `ms_p99`, `ms_max` meanwhile.
    :param rebuild_seconds: mean, under questions; so is `rollback_seconds`.
    """

    chunks: int
    asked: int
    failed: int
    empty: int
    changed: int
    rebuilds: int
    idle_ms_p50: float
    ms_p50: float
    ms_p99: float
    ms_max: float
    rebuild_seconds: float
    rollback_seconds: float
    peak_mb: float

    @property
    def passed(self) -> bool:
        """Whether no question noticed."""
        return not (self.failed or self.empty)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, by its number, and its reply."""

    number: int
    reply: Reply


class Crowd:
    """People who ask until they are told to stop.

    :param token: a bearer token with the scope `ask`.
    """

    def __init__(self, port: int, token: str, questions: Sequence[str]) -> None:
        self._port = port
        self._token = token
        self._questions = questions
        self._asked: list[Asked] = []
        self._lock = Lock()
        self._enough = Event()
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._people = [self._pool.submit(self._ask, first) for first in range(CLIENTS)]

    def _ask(self, first: int) -> None:
        client = Client(self._port, self._token)
        number = first
        while not self._enough.wait(PAUSE_SECONDS):
            reply = client.ask(self._questions[number % len(self._questions)])
            with self._lock:
                self._asked.append(Asked(number % len(self._questions), reply))
            number += CLIENTS
        client.close()

    @property
    def asked(self) -> int:
        """How many questions were asked so far."""
        return len(self._asked)

    def leave(self) -> list[Asked]:
        """Stop, and tell."""
        self._enough.set()
        for person in self._people:
            person.result()
        self._pool.shutdown()
        return self._asked


def switching(served: Served, tenant: Tenant, questions: Sequence[str], total: int) -> Measured:
    """Rebuild and roll back the index of a tenant until `total` questions were asked meanwhile."""
    ask = issue(get_settings(), tenant.tenant_id, scopes=frozenset({"ask"}), subject="crowd", ttl_seconds=3_600)
    operator = issue(get_settings(), tenant.tenant_id, scopes=SCOPES, subject="operator", ttl_seconds=3_600)
    before = alone(served.port, ask, questions)
    spent: dict[str, list[float]] = {"rebuild": [], "rollback": []}
    chunks = 0
    crowd = Crowd(served.port, ask, questions)
    with httpx.Client(
        base_url=f"http://127.0.0.1:{served.port}", headers={"Authorization": f"Bearer {operator}"}, timeout=60
    ) as client:
        while crowd.asked < total:
            for kind, seconds in spent.items():
                started = time.perf_counter()
                report = _done(client, client.post(f"/index/{kind}").raise_for_status().json()["job_id"])
                seconds.append(time.perf_counter() - started)
                chunks = int(str(report["chunks"]))
    asked = crowd.leave()
    took = [one.reply.milliseconds for one in asked]
    return Measured(
        chunks=chunks,
        asked=len(asked),
        failed=sum(one.reply.failed for one in asked),
        empty=sum(before[one.number].outcome == "answered" != one.reply.outcome for one in asked),
        changed=sum(before[one.number].outcome != one.reply.outcome for one in asked),
        rebuilds=len(spent["rebuild"]),
        idle_ms_p50=float(np.median([reply.milliseconds for reply in before])),
        ms_p50=float(np.median(took)),
        ms_p99=float(np.percentile(took, 99)),
        ms_max=max(took),
        rebuild_seconds=float(np.mean(spent["rebuild"])),
        rollback_seconds=float(np.mean(spent["rollback"])),
        peak_mb=served.memory_mb("VmHWM"),
    )


def _done(client: httpx.Client, job_id: str) -> Mapping[str, object]:
    """The report of a job once it is done. Raises `RuntimeError` when it ends otherwise."""
    while True:
        job = client.get(f"/jobs/{job_id}").raise_for_status().json()
        if job["state"] == "done":
            report: Mapping[str, object] = job["report"]
            return report
        if job["finished_at"]:
            raise RuntimeError(f"{job['kind']}: {job['state']} {job['error']}")
        time.sleep(_LOOK_SECONDS)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    total = parser.parse_args().questions
    console = Console(stderr=True)
    folder = workspace.enter(get_settings().data_dir / "bench")
    try:
        chosen = vkcloud(DATA, "ru")[0]
    except Absent as absent:
        console.print(f"skipped: {absent.path} is not here")
        return 1
    tenant = replace(workspace.tenant_for(chosen.corpus, lambda _done, _total: None), scopes=frozenset())
    index.close_all()
    database.close_all()
    with serving(folder) as served:
        measured = switching(served, tenant, [case.question for case in chosen.cases], total)
    table = Table("figure", "value", title="vkcloud-ru", title_justify="left")
    for name, value in asdict(measured).items():
        table.add_row(name, f"{value:.1f}" if isinstance(value, float) else str(value))
    console.print(table)
    sys.stdout.write(json.dumps({**asdict(measured), "passed": measured.passed}, indent=2) + "\n")
    return 0 if measured.passed else 1


if __name__ == "__main__":
    sys.exit(main())

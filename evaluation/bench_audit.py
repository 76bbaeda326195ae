"""`python -m evaluation.bench_audit`: is every answered turn in the audit exactly once, whatever breaks meanwhile?

A real service over the demo shop is asked by sixteen clients at once. After three tenths of the answers the records'
database is taken away, after six tenths, or a minute, it comes back; after eight tenths the service itself is killed
with SIGKILL and started again. SQLite is taken away by holding its write lock; with `--postgres` a server of the
benchmark's own is killed. One client's questions carry a canary, which is exported and erased in the end. What
recording costs on a turn's own path is measured first, in this process.

A table goes to standard error, the same as JSON to standard output; the exit code is 1 when a promise does not hold.
"""

import argparse
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from time import perf_counter, thread_time

import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.fixture import DEMO, questions
from evaluation.load import Client, Reply
from evaluation.postgres import PostgresServer
from evaluation.server import serving
from pipelines.ask import record
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask, begin
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants import database, index, persons
from tenants.audit import search
from tenants.audit.chain import Head, Link, Walk
from tenants.audit.recorder import Recorder
from tenants.context import SCOPES, Tenant, acting_as
from tenants.persons import Person
from tenants.registry import Registry
from tenants.tokens import issue

CLIENTS = 16
DOWN_FROM, DOWN_UNTIL, KILLED_AT = 0.3, 0.6, 0.8
CANARY = "канарейка7391"
_LONGEST_OUTAGE_SECONDS = 60.0
_REST_SECONDS = 0.2
"""How long a client waits after it was turned away."""
SHOP = Tenant("shop", "bench", SCOPES)
ASIDE = Tenant("aside", "bench", SCOPES)
"""Takes the records of what is not to be counted."""

Outage = Callable[[], AbstractContextManager[None]]
"""The records' database is away while this is entered."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was promised and what was found. `missing` turns were answered and are not in the audit.

    `refused` got an error, while the database or the service was away; `recorded_only` turns are in the audit although
    their answer never arrived: the service was killed in between.
    """

    store: str
    path_cpu_ms_p50: float
    path_cpu_ms_p95: float
    answered: int
    refused: int
    answered_while_down: int
    missing: int
    twice: int
    recorded_only: int
    faults: int
    change_detected: bool
    p50_ms: float
    p50_ms_while_down: float
    exported: int
    files_with_canary_before: int
    files_with_canary_after: int
    faults_after_erasing: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether everything is as promised."""
        wrong = self.missing + self.twice + self.faults + self.faults_after_erasing + self.files_with_canary_after
        return not wrong and self.change_detected and self.exported > 0


class Crowd:
    """Clients that ask at once, and what they were answered: the moment and the reply."""

    def __init__(self, asked: Sequence[str]) -> None:
        self._asked = asked
        self._lock = Lock()
        self._numbers = count()
        self.answered: list[tuple[float, Reply]] = []
        self.refused = 0

    def ask(self, port: int, tokens: Sequence[tuple[str, str]], until: int, seconds: float = inf) -> None:
        """Ask until there are so many answers, the time is up, or the service has gone.

        :param tokens: of each client, with what it adds to its questions.
        """
        latest = perf_counter() + seconds
        threads = [Thread(target=self._client, args=(port, *token, until, latest)) for token in tokens]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _client(self, port: int, token: str, mark: str, until: int, latest: float) -> None:
        client, rest = Client(port, token), Event()
        while len(self.answered) < until and perf_counter() < latest:
            question = self._asked[next(self._numbers) % len(self._asked)]
            reply = client.ask(f"{question} {mark}".strip())
            if reply.status == 200:
                self.answered.append((perf_counter(), reply))
                continue
            with self._lock:
                self.refused += 1
            if not reply.status:
                break
            rest.wait(_REST_SECONDS)
        client.close()


@contextmanager
def locked() -> Iterator[None]:
    """SQLite without its write lock: nobody else can write."""
    taken, free = Event(), Event()

    def hold() -> None:
        with database.writing():
            taken.set()
            free.wait()

    holder = Thread(target=hold)
    holder.start()
    taken.wait()
    try:
        yield
    finally:
        free.set()
        holder.join()


def measure(folder: Path, total: int, store: str, outage: Outage) -> Result:
    """The whole life: asked, taken away, brought back, killed, started again, counted, touched, erased."""
    started = perf_counter()
    tokens = _prepared()
    path = _path_cpu()
    crowd = Crowd(_asked())
    with serving(folder) as served:
        crowd.ask(served.port, tokens, int(total * DOWN_FROM))
        with outage():
            down = perf_counter()
            crowd.ask(served.port, tokens, int(total * DOWN_UNTIL), _LONGEST_OUTAGE_SECONDS)
            up = perf_counter()
        killer = Thread(target=_kill, args=(served.pid, crowd, int(total * KILLED_AT)))
        killer.start()
        crowd.ask(served.port, tokens, total)
        killer.join()
    while len(crowd.answered) < total:
        with serving(folder) as served:
            crowd.ask(served.port, tokens, total)
    Recorder().collect()
    answered = crowd.answered
    while_down = [reply.milliseconds for at, reply in answered if down <= at <= up]
    otherwise = [reply.milliseconds for at, reply in answered if not down <= at <= up]
    with acting_as(SHOP):
        found = Counter(link.turn_id for link in search.links() if link.kind == "turn")
        result = Result(
            store=store,
            path_cpu_ms_p50=float(np.percentile(path, 50)),
            path_cpu_ms_p95=float(np.percentile(path, 95)),
            answered=len(answered),
            refused=crowd.refused,
            answered_while_down=len(while_down),
            missing=sum(reply.turn_id not in found for _, reply in answered),
            twice=sum(times > 1 for times in found.values()),
            recorded_only=len(found.keys() - {reply.turn_id for _, reply in answered}),
            faults=len(search.verify().faults),
            change_detected=_change_is_detected(),
            p50_ms=float(np.percentile(otherwise, 50)),
            p50_ms_while_down=float(np.percentile(while_down, 50)) if while_down else 0.0,
            exported=len(persons.export(Person(subject="canary"))["turns"]),
            files_with_canary_before=_holding(folder),
            files_with_canary_after=0,
            faults_after_erasing=0,
            seconds=0.0,
        )
        persons.erase(Person(subject="canary"))
        left = search.verify().faults
    database.close_all()
    seconds = round(perf_counter() - started, 1)
    return replace(result, files_with_canary_after=_holding(folder), faults_after_erasing=len(left), seconds=seconds)


def _prepared() -> list[tuple[str, str]]:
    """The demo shop as a tenant, and sixteen clients: one of them says the canary with every question."""
    Registry().add(SHOP.tenant_id)
    with acting_as(SHOP):
        Ingest().run_path(DEMO / "ru")
    subjects = ["canary", *(f"client-{number}" for number in range(1, CLIENTS))]
    return [
        (
            issue(get_settings(), SHOP.tenant_id, scopes=("ask",), subject=subject, ttl_seconds=86_400),
            CANARY if subject == "canary" else "",
        )
        for subject in subjects
    ]


def _path_cpu() -> list[float]:
    """CPU milliseconds that recording adds to the thread of each of some turns; the reply is encoded in any case."""
    Registry().add(ASIDE.tenant_id)
    ask, spent = Ask(), []
    for question in _asked()[::3]:
        request = AskRequest(question=question)
        with acting_as(SHOP):
            turn = ask.finish(begin(request))[0]
        answer = answer_of(turn)
        _ = answer.encoded
        with acting_as(ASIDE):
            started = thread_time()
            ask.recorder.record(record.entry(request, turn, answer, at=datetime.now(UTC), pipeline="bench"))
            spent.append((thread_time() - started) * 1_000)
    ask.close()
    index.close_all()
    database.close_all()
    return spent


def _asked() -> list[str]:
    """What the demo shop can answer, what it refuses, and what gets a fixed reply; nothing that opens a ticket."""
    articles = [
        line.lstrip("# ") for path in sorted((DEMO / "ru").glob("*.md")) for line in path.open(encoding="utf-8")
    ]
    headings = [line.strip() for line in articles if line.strip() and len(line) < 60]
    codes = [form.format(code=f"E{number}") for number in range(40, 60) for form in questions().near_misses]
    return [*random.Random(7).sample(headings, 200), *codes, *questions().refused, *questions().fixed]  # noqa: S311


def _kill(pid: int, crowd: Crowd, at: int) -> None:
    waiting = Event()
    while len(crowd.answered) < at:
        waiting.wait(0.05)
    os.kill(pid, signal.SIGKILL)


def _change_is_detected() -> bool:
    """Whether each of ten links, changed by a single letter on the way, is found out."""
    links = list(search.links())
    head = Head(links[-1].sequence, links[-1].hash)

    def found(touched: Link) -> bool:
        walk = Walk(SHOP.tenant_id, [head])
        walk.meet(touched if link.sequence == touched.sequence else link for link in links)
        return any(fault.sequence == touched.sequence for fault in walk.result().faults)

    chosen = random.Random(7).sample([link for link in links if link.content], 10)  # noqa: S311
    return all(
        found(replace(link, content=replace(link.content, body=link.content.body.replace("а", "о", 1))))
        for link in chosen
        if link.content is not None
    )


def _holding(folder: Path) -> int:
    """How many files of the data folder hold the canary in plain bytes."""
    return sum(CANARY.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--postgres", action="store_true", help="keep the records on a PostgreSQL server, and kill it")
    options = parser.parse_args()
    with TemporaryDirectory() as place, ExitStack() as running:
        folder = Path(place, "data")
        os.environ["OPORA_DATA_DIR"] = str(folder)
        outage: Outage = locked
        if options.postgres:
            server = running.enter_context(PostgresServer(Path(place, "postgres")))
            os.environ["OPORA_DATABASE_URL"] = server.url
            outage = server.away
        get_settings.cache_clear()
        result = measure(folder, options.turns, "postgresql" if options.postgres else "sqlite", outage)
    table = Table("what", "found", show_header=False)
    for name, value in asdict(result).items():
        table.add_row(name, str(value))
    Console(stderr=True).print(table)
    sys.stdout.write(json.dumps({"schema": "bench_audit.v1", **asdict(result), "holds": result.holds}, indent=2) + "\n")
    sys.exit(0 if result.holds else 1)


if __name__ == "__main__":
    main()

"""`python -m evaluation.benchmarks.soak`: does a service that is used all day stay the size it was in the morning?

A working day of mixed use in half an hour: questions, streams, chats with open event streams, small documents in new
versions, verdicts, searches of the audit, with idle pauses. Every few seconds the operating system is asked for memory,
descriptors and threads of the service and its workers, and the database for its rows. A table goes to standard error,
everything as JSON to standard output, and with `--plot FILE` the curves as SVG. The exit code is 1 if anything grew, or
if a request failed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Semaphore, Thread
from time import monotonic

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.benchmarks.callers import Caller, following, until
from evaluation.benchmarks.courses import Course, courses
from evaluation.benchmarks.server import Served, descendants, resident_mb, serving
from evaluation.benchmarks.streams import stream_turn
from evaluation.datasets.fixture import questions
from settings import ROOT, get_settings
from tenants.access.tokens import issue
from tenants.core.context import SCOPES
from tenants.storage import database

SCHEMA = "bench-soak.v1"
MINUTES = 30.0
CYCLE_SECONDS = 300.0
PAUSE_SECONDS = 60.0
SAMPLE_SECONDS = 5.0
WORKERS = 6
DOCUMENTS = 5
"""Documents that are written again and again: each has its ten versions before the second quarter."""

RATES = {
    "question": 5.0,
    "stream": 0.8,
    "chat": 0.4,
    "verdict": 0.4,
    "audit": 0.3,
    "document": 0.15,
    "listing": 0.3,
}
"""Rate of each action per second."""

KEPT = frozenset(
    {
        "audit",
        "audit_contents",
        "audit_documents",
        "chat_messages",
        "chats",
        "conversations",
        "feedback",
        "gap_askings",
        "gaps",
        "idempotency",
        "jobs",
        "tickets",
    }
)
"""Tables with a row for each thing that happened, kept for as long as the settings say. No other may grow."""

_TENANT = "demo-ru"
_TOKEN_SECONDS = 36_000
_DRAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the service after `seconds`. Memory is that of all its processes, in MB (10^6 bytes)."""

    seconds: float
    memory_mb: float
    service_mb: float
    descriptors: int
    threads: int
    processes: int
    rows: int
    rows_kept: int
    disk_mb: float


@dataclass(frozen=True, slots=True)
class Bound:
    """Allowed growth of a quantity from the second quarter of the run to the last: `share` of it, plus `more`."""

    share: float
    more: float


BOUNDS: Mapping[str, Bound] = {
    "memory_mb": Bound(0.05, 10.0),
    "descriptors": Bound(0.05, 4.0),
    "threads": Bound(0.05, 2.0),
    "rows": Bound(0.01, 70.0),  # differences of the lexicon, until 64 of them are folded into one
}


class Usage:
    """All users of the service.

    :ivar done: number of successful actions by kind.
    :ivar failures: number of failures by kind.
    """

    def __init__(self, served: Served, seed: int = 7) -> None:
        self.served = served
        self.done: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._chance = random.Random(seed)  # noqa: S311 - the same usage each time
        self._lock = Lock()
        self._token = issue(get_settings(), _TENANT, scopes=SCOPES, subject="soak", ttl_seconds=_TOKEN_SECONDS)
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{served.port}", headers={"Authorization": f"Bearer {self._token}"}, timeout=60
        )
        self._asked = [one.question for one in questions().shops["ru"].showcase]
        self._turns: list[str] = []
        self._number = count()
        self._slots = Semaphore(WORKERS)

    def run(self, seconds: float, stop: Event) -> None:
        """Use the service for this time, with a pause at the end of each cycle."""
        began, owed = monotonic(), dict.fromkeys(RATES, 0.0)
        with ThreadPoolExecutor(WORKERS, "soak") as pool:
            last = began
            while (now := monotonic()) - began < seconds and not stop.wait(0.1):
                spent, last = min(1.0, now - last), now
                if (now - began) % CYCLE_SECONDS >= CYCLE_SECONDS - PAUSE_SECONDS:
                    continue
                for name, rate in RATES.items():
                    # Like people: not in step.
                    owed[name] += rate * spent * self._chance.uniform(0.5, 1.5)
                    while owed[name] >= 1.0:
                        owed[name] -= 1.0
                        if self._slots.acquire(timeout=_DRAIN_SECONDS):
                            pool.submit(self._do, name)
        self._client.close()

    def _do(self, name: str) -> None:
        actions: Mapping[str, Callable[[], None]] = {
            "question": self._ask,
            "stream": self._stream,
            "chat": self._chat,
            "verdict": self._judge,
            "audit": self._audit,
            "document": self._document,
            "listing": self._list,
        }
        try:
            actions[name]()
            outcome = self.done
        except Exception as error:
            outcome, name = self.failures, f"{name}: {type(error).__name__} {error}"[:200]
        finally:
            self._slots.release()
        with self._lock:
            outcome[name] += 1

    def _question(self) -> str:
        with self._lock:
            asked, number = self._chance.choice(self._asked), next(self._number)
        # Every third is a new one, so that no cache has it.
        return asked if number % 3 else f"{asked} Заказ {100_000 + number}"

    def _ask(self) -> None:
        session = {"session_id": f"s{next(self._number) % 50}"} if self._chance.random() < 0.3 else {}
        key = {"Idempotency-Key": f"k{next(self._number)}"} if self._chance.random() < 0.1 else {}
        reply = self._client.post("/ask/run", json={"question": self._question(), **session}, headers=key)
        answer = reply.raise_for_status().json()
        if answer["outcome"] == "failed":
            raise RuntimeError(answer["refusal_reason"])
        with self._lock:
            self._turns = [*self._turns[-50:], answer["turn_id"]]

    def _stream(self) -> None:
        hung_up = self._chance.random() < 0.2
        turn = stream_turn(self.served.port, self._token, self._question(), until="accepted" if hung_up else "")
        if not hung_up and turn.faults:
            raise RuntimeError(turn.faults[0])

    def _chat(self) -> None:
        caller = Caller(self.served, f"v:{next(self._number) % 40}", "visit")
        with closing(caller):
            chat = caller.begin()
            with following(caller, chat) as events:
                caller.post(f"{chat}/messages", text=self._question(), client_id="c")
                until(events, lambda event: event.name == "message" and event.data["author"] == "bot")

    def _judge(self) -> None:
        if self._turns:
            verdict = {"turn_id": self._chance.choice(self._turns), "thumb": self._chance.choice(["up", "down"])}
            reply = self._client.post("/feedback", json=verdict)
            # The record of the newest turn may be on its way.
            if reply.status_code != httpx.codes.NOT_FOUND:
                reply.raise_for_status()

    def _audit(self) -> None:
        self._client.get("/audit", params={"limit": 50, "words": "заказ"}).raise_for_status()
        self._client.get("/gaps").raise_for_status()

    def _document(self) -> None:
        number = next(self._number)
        text = f"# Акция {number % DOCUMENTS}\n\nАкция номер {number}: скидка {number % 40} % до конца недели.\n"
        name = f"promo-{number % DOCUMENTS}.md"
        reply = self._client.post("/documents", files=[("files", (name, text.encode()))]).raise_for_status()
        job = f"/jobs/{reply.json()['job_id']}"
        with self._client.stream("GET", f"{job}/events") as events:
            for _ in events.iter_lines():
                continue
        state = self._client.get(job).raise_for_status().json()["state"]
        if state != "done":
            raise RuntimeError(f"a job is {state}")

    def _list(self) -> None:
        for path in ("/documents", "/jobs", "/readyz"):
            self._client.get(path).raise_for_status()


class Watch:
    """Samples the operating system and the database every few seconds, in a background thread."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.samples: list[Sample] = []
        self.tables: dict[str, int] = {}
        self._served, self._folder = served, folder
        self._began = monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="watch")

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self.samples.append(self._sample())

    def _sample(self) -> Sample:
        pid = self._served.pid
        self.tables = database.row_counts()
        kept = sum(number for name, number in self.tables.items() if name in KEPT)
        return Sample(
            seconds=monotonic() - self._began,
            memory_mb=resident_mb(pid),
            service_mb=self._served.memory_mb("VmRSS"),
            descriptors=_entries(pid, "fd"),
            threads=_entries(pid, "task"),
            processes=1 + len(descendants(pid)),
            rows=sum(self.tables.values()) - kept,
            rows_kept=kept,
            disk_mb=_size(self._folder) / 1e6,
        )


@dataclass(frozen=True)
class Result:
    """A whole run."""

    samples: Sequence[Sample]
    tables: Mapping[str, int]
    done: Mapping[str, int]
    failures: Mapping[str, int]
    processor_share: float

    @cached_property
    def growth(self) -> Mapping[str, tuple[float, float]]:
        """Return the mean of each bounded quantity in the second quarter of the run, and in the last."""
        quarter = max(1, len(self.samples) // 4)
        parts = self.samples[quarter : 2 * quarter], self.samples[-quarter:]
        return {
            name: (_mean(parts[0], name), _mean(parts[1], name))
            for name in (*BOUNDS, "service_mb", "processes", "rows_kept", "disk_mb")
        }

    @property
    def grown(self) -> list[str]:
        """Return the quantities that grew beyond their bounds."""
        return [
            name
            for name, bound in BOUNDS.items()
            if self.growth[name][1] > self.growth[name][0] * (1 + bound.share) + bound.more
        ]

    def as_json(self) -> Mapping[str, object]:
        """Return the result as JSON."""
        return {
            "schema": SCHEMA,
            "growth": self.growth,
            "grown": self.grown,
            "done": self.done,
            "failures": self.failures,
            "tables": self.tables,
            "processor_share": round(self.processor_share, 3),
            "samples": [asdict(sample) for sample in self.samples],
        }

    def plot(self) -> str:
        """Plot each quantity over time as SVG."""
        minutes = [sample.seconds / 60 for sample in self.samples]
        shown = {
            "Memory of the service and its workers, MB": "memory_mb",
            "Open files": "descriptors",
            "Threads": "threads",
            "Rows of tables that keep a state": "rows",
            "Rows of tables that keep what happened": "rows_kept",
        }
        return courses(
            "minutes",
            [Course(title, minutes, [_value(one, name) for one in self.samples]) for title, name in shown.items()],
        )


def run(minutes: float) -> Result:
    """Serve the demo's knowledge base, use it for so long, and measure."""
    with TemporaryDirectory() as folder:
        os.environ |= {"OPORA_DATA_DIR": folder, "OPORA_MODELS_DIR": str(get_settings().models)}
        get_settings.cache_clear()
        subprocess.run(
            [sys.executable, "-m", "cli", "demo", "--locale", "ru"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True
        )
        limits = {"OPORA_CHAT_MESSAGES_PER_MINUTE": "0", "OPORA_VISITOR_SESSIONS_PER_MINUTE": "0"}
        with serving(Path(folder), **limits) as served, Watch(served, Path(folder)) as watch:
            usage, began, used = Usage(served), monotonic(), served.cpu_seconds()
            usage.run(60 * minutes, Event())
            share = (served.cpu_seconds() - used) / (monotonic() - began)
        database.close_all()
    return Result(watch.samples, watch.tables, usage.done, usage.failures, share)


def _value(sample: Sample, name: str) -> float:
    return float(getattr(sample, name))


def _mean(samples: Sequence[Sample], name: str) -> float:
    return round(float(np.mean([_value(sample, name) for sample in samples])), 1)


def _entries(pid: int, folder: str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/{folder}").iterdir())


def _size(folder: Path) -> int:
    """Return the bytes of all files; some disappear while they are counted."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(root, name).stat().st_size
    return total


def print_result(result: Result) -> None:
    """Print the table to standard error."""
    table = Table("quantity", "second quarter", "last quarter", "flat")
    for name, (before, after) in result.growth.items():
        flat = "" if name not in BOUNDS else ("no" if name in result.grown else "yes")
        table.add_row(name, f"{before:,.1f}", f"{after:,.1f}", flat)
    console = Console(stderr=True)
    console.print(table)
    console.print(
        f"done: {dict(result.done)}; failures: {dict(result.failures)}; processor: {result.processor_share:.0%}"
    )


def main() -> int:
    """Run and print; 1 when something grew or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--plot", type=Path, help="where to write the course as SVG")
    arguments = parser.parse_args()
    result = run(arguments.minutes)
    print_result(result)
    if arguments.plot:
        arguments.plot.write_text(result.plot(), encoding="utf-8")
    sys.stdout.write(json.dumps(result.as_json(), ensure_ascii=False, indent=1) + "\n")
    return 1 if result.grown or result.failures else 0


if __name__ == "__main__":
    sys.exit(main())

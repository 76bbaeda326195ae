"""`python -m evaluation.benchmarks.soak`: does a service that is used all day stay the size it was in the morning?

A working day of mixed use in half an hour: questions, streams, chats with open event streams, small documents in new
versions, verdicts, searches of the audit, with idle pauses. Every few seconds the operating system is asked for memory,
descriptors and threads of the service and its workers, and the database for its rows. A table goes to standard error,
everything as JSON to standard output. The exit code is 1 if anything grew, or if a request failed.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Semaphore
from time import monotonic, sleep
from typing import Annotated

import httpx
import numpy as np
import typer

from evaluation.benchmarks import results
from evaluation.benchmarks.server import (
    Served,
    installation,
    opora,
    repeating,
    resident_mb,
    serving,
    token_for,
)
from evaluation.benchmarks.streams import read_events, stream_turn
from evaluation.datasets.fixture import questions
from tenants.core.context import SCOPES
from tenants.storage import diagnosis

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
_DRAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the service after `seconds`. Memory is that of all its processes, in MB (10^6 bytes)."""

    seconds: float
    memory_mb: float
    descriptors: int
    threads: int
    rows: int
    rows_kept: int


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
    def __init__(self, served: Served) -> None:
        self.served = served
        self.done: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._chance = random.Random(7)  # noqa: S311 - the same usage each time
        self._lock = Lock()
        self._token = token_for(_TENANT, *SCOPES)
        self._client = served.client(self._token)
        self._asked = [one.question for one in questions().shops["ru"].showcase]
        self._turns: list[str] = []
        self._number = count()
        self._slots = Semaphore(WORKERS)

    def run(self, seconds: float) -> None:
        began, owed = monotonic(), dict.fromkeys(RATES, 0.0)
        with ThreadPoolExecutor(WORKERS, "soak") as pool:
            last = began
            while (now := monotonic()) - began < seconds:
                sleep(0.1)
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
        visitor = token_for(_TENANT, "visit", subject=f"v:{next(self._number) % 40}")
        headers = {"Authorization": f"Bearer {visitor}"}
        begun = self._client.post("/chats", json={}, headers=headers).raise_for_status()
        chat = f"/chats/{begun.json()['chat_id']}"
        with self._client.stream("GET", f"{chat}/events", headers=headers) as stream:
            events = read_events(stream.iter_lines())
            next(event for event in events if event.name == "snapshot")
            message = {"text": self._question(), "client_id": "c"}
            self._client.post(f"{chat}/messages", json=message, headers=headers).raise_for_status()
            next(event for event in events if event.name == "message" and event.data["author"] == "bot")

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


@contextmanager
def watching(served: Served) -> Iterator[list[Sample]]:
    """Sample the operating system and the database every few seconds in this block."""
    samples: list[Sample] = []
    began = monotonic()

    def sample() -> None:
        samples.append(_sample(served, monotonic() - began))

    with repeating(sample, SAMPLE_SECONDS):
        yield samples


def _sample(served: Served, seconds: float) -> Sample:
    tables = diagnosis.row_counts()
    kept = sum(number for name, number in tables.items() if name in KEPT)
    return Sample(
        seconds=seconds,
        memory_mb=resident_mb(served.pid),
        descriptors=_entries(served.pid, "fd"),
        threads=_entries(served.pid, "task"),
        rows=sum(tables.values()) - kept,
        rows_kept=kept,
    )


@dataclass(frozen=True, slots=True)
class Result:
    samples: Sequence[Sample]
    tables: Mapping[str, int]
    done: Mapping[str, int]
    failures: Mapping[str, int]
    processor_share: float

    def growth(self) -> dict[str, tuple[float, float]]:
        """Return the mean of each quantity in the second quarter of the run, and in the last."""
        quarter = max(1, len(self.samples) // 4)
        parts = self.samples[quarter : 2 * quarter], self.samples[-quarter:]
        names = (*BOUNDS, "rows_kept")
        return {name: (_mean(parts[0], name), _mean(parts[1], name)) for name in names}


def grown(growth: Mapping[str, tuple[float, float]]) -> list[str]:
    return [
        name for name, bound in BOUNDS.items() if growth[name][1] > growth[name][0] * (1 + bound.share) + bound.more
    ]


def measure(minutes: float) -> Result:
    """Serve the demo's knowledge base, use it for so long, and measure."""
    limits = {"OPORA_CHAT_MESSAGES_PER_MINUTE": "0", "OPORA_VISITOR_SESSIONS_PER_MINUTE": "0"}
    with TemporaryDirectory() as temporary, installation(folder := Path(temporary)):
        opora("demo", "--locale", "ru")
        with serving(folder, **limits) as served, watching(served) as samples:
            usage, began, used = Usage(served), monotonic(), served.cpu_seconds()
            usage.run(60 * minutes)
            share = (served.cpu_seconds() - used) / (monotonic() - began)
        return Result(samples, diagnosis.row_counts(), dict(usage.done), dict(usage.failures), round(share, 3))


def _mean(samples: Sequence[Sample], name: str) -> float:
    return round(float(np.mean([getattr(sample, name) for sample in samples])), 1)


def _entries(pid: int, folder: str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/{folder}").iterdir())


def main(minutes: Annotated[float, typer.Option(help="How long to use the service.")] = MINUTES) -> None:
    """Run and print; exit code 1 when something grew or failed."""
    result = measure(minutes)
    growth = result.growth()
    too_large = grown(growth)
    rows = [(name, before, after) for name, (before, after) in growth.items()]
    results.print_table(f"{minutes:g} minutes of use", ("quantity", "second quarter", "last quarter"), rows, too_large)
    results.print_faults([f"{count} times {failure}" for failure, count in result.failures.items()])
    results.console.print(f"done: {dict(result.done)}; processor: {result.processor_share:.0%}", highlight=False)
    content = {"schema": SCHEMA, "growth": growth, "grown": too_large, **asdict(result)}
    results.end(content, failed=bool(too_large or result.failures))


if __name__ == "__main__":
    typer.run(main)

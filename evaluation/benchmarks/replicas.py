"""Two replicas and two workers on one PostgreSQL, Redis and Qdrant, killed in turn under load.

Counted are answers that the audit lacks or holds differently; questions with two answers; streams that did not end at
the other replica; calls beyond a limit shared by both replicas; jobs that were lost or ran twice. A killed process
starts again with an empty data folder, which must not matter.

`python -m evaluation.benchmarks.replicas`, with the servers of `OPORA_TEST_POSTGRES_URL`, `OPORA_TEST_REDIS_URL` and
`OPORA_TEST_QDRANT_URL`, or with those of this machine; without a Qdrant server, a fake of one.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from uuid import uuid4

import httpx
from rich.console import Console
from rich.table import Table

from settings import ROOT, get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import documents
from tenants.storage import bus, database
from tenants.work import claims, jobs

ACME, LIMITED = "acme", "limited"
LIMIT = 5
"""Questions a minute of the one tenant that has a limit."""

_PATIENCE_SECONDS = 180.0
_KEYS = {
    "OPORA_DATA_KEYS": "replicas-share-the-keys-of-data-0",
    "OPORA_TOKEN_KEYS": "replicas-share-the-keys-of-tokens-0",
}
_TOPICS = ("вода не сливается", "дверца не открывается", "барабан не крутится", "насос гудит", "лампа мигает")
_ARTICLES = [
    {
        "doc_id": f"e{number}.md",
        "title": f"Ошибка E{number}",
        "text": f"## E{number}\n\nКод E{number} означает, что {topic}. Выключите машину и очистите фильтр.\n",
    }
    for number, topic in enumerate(_TOPICS, 10)
]


@dataclass(frozen=True, slots=True)
class Stores:
    """The servers that the replicas share."""

    database_url: str
    redis_url: str
    qdrant_url: str


@dataclass(slots=True)
class Counts:
    """Counters of a run. The fields from `lost` on are 0 in a correct run."""

    kills: int = 0
    answered: int = 0
    streamed: int = 0
    moved: int = 0
    refused_by_limit: int = 0
    jobs: int = 0
    undelivered: int = 0
    lost: int = 0
    otherwise: int = 0
    doubled: int = 0
    unanswered: int = 0
    broken_streams: int = 0
    over_limit: int = 0
    jobs_not_done: int = 0
    documents_wrong: int = 0
    chain_faults: int = 0

    @property
    def is_flawless(self) -> bool:
        """Whether no answer or job was lost, duplicated or broken."""
        names = list(asdict(self))
        return not any(getattr(self, name) for name in names[names.index("lost") :])


class Replica:
    """A service process that can be killed and started again, each time on an empty data folder."""

    command: tuple[str, ...] = ("-c", "import app; app.serve()")

    def __init__(self, folder: Path, name: str, variables: Mapping[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder, self._name, self._starts = folder, name, 0
        self._variables = variables
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it."""
        self._starts += 1
        home = self._folder / f"{self._name}-{self._starts}"
        environment = {**os.environ, **self._variables, "OPORA_DATA_DIR": str(home), "OPORA_PORT": str(self.port)}
        self.process = subprocess.Popen([sys.executable, *self.command], cwd=ROOT, env=environment)  # noqa: S603

    def await_ready(self) -> None:
        """Wait until it is ready."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until and self.process is not None and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise RuntimeError(f"replica {self._name} does not get ready")

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(_PATIENCE_SECONDS)
            self.process = None


class Worker(Replica):
    """A process of `opora worker`. It serves no requests."""

    command = ("-m", "cli", "worker")

    def await_ready(self) -> None:
        """Return at once."""


@dataclass(slots=True)
class _Client:
    """State shared by the threads of a run."""

    replicas: tuple[Replica, Replica]
    workers: tuple[Worker, Worker]
    until: float
    token: str
    limited: str
    numbers: Iterator[int] = field(default_factory=count)
    counts: Counts = field(default_factory=Counts)
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Turn and text that a client got, by question."""
    doubled: Counter[str] = field(default_factory=Counter)
    allowed: list[float] = field(default_factory=list)
    jobs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def take(self, question: str, turn_id: str, text: str) -> None:
        """Record an answer."""
        with self.lock:
            self.counts.answered += 1
            earlier = self.answers.setdefault(question, (turn_id, text))
            self.doubled[question] += earlier[0] != turn_id

    def increment(self, name: str) -> None:
        """Increment a counter."""
        with self.lock:
            setattr(self.counts, name, getattr(self.counts, name) + 1)


def _ask(shared: _Client, number: int) -> None:
    """Run one client: it asks, and repeats a failed request at the other replica."""
    with httpx.Client(headers={"Authorization": f"Bearer {shared.token}"}, timeout=70) as client:
        for turn in count():
            if time.monotonic() >= shared.until:
                return
            asked = next(shared.numbers)
            question = f"Что означает код E{10 + asked % len(_TOPICS)}? Обращение {asked}."
            if turn % 3 == 2:
                _follow(shared, client, question, asked + number, moving=turn % 2 == 0)
            else:
                _ask_at_any(shared, client, question, asked + number)


def _ask_at_any(shared: _Client, client: httpx.Client, question: str, first: int) -> None:
    key, until = str(uuid4()), time.monotonic() + _PATIENCE_SECONDS
    for at in count(first):
        try:
            url = f"{shared.replicas[at % 2].url}/ask/run"
            reply = client.post(url, json={"question": question}, headers={"Idempotency-Key": key})
        except httpx.TransportError:
            reply = None
        if reply is not None and reply.status_code == 200:
            answer = reply.json()
            shared.take(question, answer["turn_id"], answer["answer"]["text"])
            return
        if time.monotonic() >= until:
            shared.increment("unanswered")
            return
        time.sleep(0.1)


def _follow(shared: _Client, client: httpx.Client, question: str, first: int, *, moving: bool) -> None:
    """Read a stream to its end, switching replicas if needed.

    :param moving: leave the first replica after the first event, although it works.
    """
    key, last, until = str(uuid4()), "", time.monotonic() + _PATIENCE_SECONDS
    shared.increment("streamed")
    result: tuple[str, str] | None = None
    for at in count(first):
        if time.monotonic() >= until:
            shared.increment("broken_streams")
            return
        headers = {"Idempotency-Key": key, **({"Last-Event-ID": last} if last else {})}
        url = f"{shared.replicas[at % 2].url}/ask/stream"
        try:
            with client.stream("POST", url, json={"question": question}, headers=headers) as reply:
                if reply.status_code != 200:
                    # The stream was not shared yet when its replica was killed: only the client knows about it.
                    last = "" if reply.status_code == 404 else last
                    time.sleep(0.1)
                    continue
                for name, event_id, data in _events(reply):
                    if last and event_id.rpartition(":")[0] == last.rpartition(":")[0] and _at(event_id) <= _at(last):
                        shared.increment("broken_streams")
                    last = event_id
                    if name == "result":
                        result = str(data["turn_id"]), str(data["answer"]["text"])  # type: ignore[index]
                    elif name == "done" and result is not None:
                        shared.take(question, *result)
                        return
                    elif name == "error":
                        last, result = "", None
                        break
                    elif moving and at == first:
                        shared.increment("moved")
                        break
        except httpx.TransportError:
            if last:
                shared.increment("moved")
        time.sleep(0.05)


def _events(reply: httpx.Response) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    fields: dict[str, str] = {}
    for line in reply.iter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


def _at(event_id: str) -> int:
    return int(event_id.rpartition(":")[2])


def _press(shared: _Client) -> None:
    """Ask more often than the limit allows, at both replicas in turn."""
    with httpx.Client(headers={"Authorization": f"Bearer {shared.limited}"}, timeout=70) as client:
        for at in count():
            if time.monotonic() >= shared.until:
                return
            try:
                reply = client.post(f"{shared.replicas[at % 2].url}/ask/run", json={"question": "Что такое E10?"})
            except httpx.TransportError:
                continue
            if reply.status_code == 200:
                shared.allowed.append(time.monotonic())
            elif reply.status_code == 429:
                shared.increment("refused_by_limit")
            time.sleep(0.2)


def _load(shared: _Client) -> None:
    """Upload files to any replica; each acknowledged upload is a job."""
    with httpx.Client(headers={"Authorization": f"Bearer {shared.token}"}, timeout=70) as client:
        for batch in count():
            if time.monotonic() >= shared.until:
                return
            names = tuple(f"load-{batch}-{number}.md" for number in range(3))
            files = [("files", (name, f"# {name}\n\nСтатья {name}.\n".encode())) for name in names]
            key = str(uuid4())
            for at in count(batch):
                try:
                    url = f"{shared.replicas[at % 2].url}/documents"
                    reply = client.post(url, files=files, headers={"Idempotency-Key": key})
                except httpx.TransportError:
                    reply = None
                if reply is not None and reply.status_code == 202:
                    shared.jobs[reply.json()["job_id"]] = names
                    break
                time.sleep(0.2)
            time.sleep(0.5)


@dataclass(frozen=True, slots=True)
class Installation:
    """Two replicas that serve, two workers, and tokens of their two tenants."""

    replicas: tuple[Replica, Replica]
    workers: tuple[Worker, Worker]
    token: str
    limited: str


@contextmanager
def serving(stores: Stores, folder: Path) -> Iterator[Installation]:
    """Run two replicas, two workers and their tenants until the block ends. Requires the settings of `sharing`."""
    variables = variables_of(stores, folder)
    replicas = (Replica(folder, "first", variables), Replica(folder, "second", variables))
    workers = (Worker(folder, "worker-1", variables), Worker(folder, "worker-2", variables))
    for tenant_id, limit in ((ACME, 0), (LIMITED, LIMIT)):
        Registry().add(tenant_id)
        with acting_as(Tenant(tenant_id, "bench")):
            policy.change(rate_limit_per_minute=limit, rate_limit_per_day=0)
    token, limited = (
        issue(get_settings(), tenant_id, scopes=SCOPES, subject="bench", ttl_seconds=36_000)
        for tenant_id in (ACME, LIMITED)
    )
    try:
        for process in (*replicas, *workers):
            process.launch()
        for replica in replicas:
            replica.await_ready()
        for bearer in (token, limited):
            loaded = httpx.post(
                f"{replicas[0].url}/ingest/run",
                json={"documents": _ARTICLES},
                headers={"Authorization": f"Bearer {bearer}"},
                timeout=60,
            )
            loaded.raise_for_status()
        yield Installation(replicas, workers, token, limited)
    finally:
        for process in (*replicas, *workers):
            process.end(signal.SIGTERM)


def run(installation: Installation, *, seconds: float, askers: int, kills: int) -> Counts:
    """Ask, load and follow for that long, killing the first replica and each worker in turn, and count."""
    until = time.monotonic() + seconds
    shared = _Client(installation.replicas, installation.workers, until, installation.token, installation.limited)
    _press_all(shared, seconds, askers, kills)
    _await_jobs(shared)
    for process in (*installation.replicas, *installation.workers):
        process.end(signal.SIGTERM)
    _count(shared)
    return shared.counts


def _press_all(shared: _Client, seconds: float, askers: int, kills: int) -> None:
    threads = [Thread(target=_ask, args=(shared, number)) for number in range(askers)]
    threads += [Thread(target=_press, args=(shared,)), Thread(target=_load, args=(shared,))]
    for thread in threads:
        thread.start()
    for number in range(kills):
        time.sleep(max(0.0, shared.until - seconds + seconds * (number + 1) / (kills + 1) - time.monotonic()))
        victim = (shared.replicas[0], *shared.workers)[number % 3]
        victim.end(signal.SIGKILL)
        shared.increment("kills")
        time.sleep(min(2.0, seconds / 10))
        victim.launch()
        victim.await_ready()
    for thread in threads:
        thread.join()


def _await_jobs(shared: _Client) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    with acting_as(Tenant(ACME, "bench")):
        while jobs.open_jobs() and time.monotonic() < until:
            time.sleep(0.2)
    shared.counts.jobs = len(shared.jobs)


def _count(shared: _Client) -> None:
    """Compare the clients' answers with the stored ones."""
    counts = shared.counts
    with acting_as(Tenant(ACME, "bench")):
        recorded = {one.turn_id: one for one in search.find(search.TurnQuery(), limit=1_000_000)}
        delivered = {turn_id for turn_id, _ in shared.answers.values()}
        counts.undelivered = len(recorded.keys() - delivered)
        for turn_id, text in shared.answers.values():
            record = recorded.get(turn_id)
            if record is None:
                counts.lost += 1
            elif text not in json.dumps(record.content, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"'):
                counts.otherwise += 1
        counts.doubled = sum(times > 0 for times in shared.doubled.values())
        counts.chain_faults = len(search.verify().faults)
        done = {job.job_id: job for job in jobs.latest(limit=1_000_000)}
        counts.jobs_not_done = sum(done[job_id].state != "done" for job_id in shared.jobs)
        expected = {name for names in shared.jobs.values() for name in names} | {
            str(one["doc_id"]) for one in _ARTICLES
        }
        counts.documents_wrong = len(expected ^ {record.doc_id for record in documents.all()})
    for moment in shared.allowed:
        within = sum(moment <= other < moment + 60 for other in shared.allowed)
        counts.over_limit = max(counts.over_limit, within - LIMIT)


def variables_of(stores: Stores, folder: Path) -> dict[str, str]:
    """Return the environment of a replica."""
    return {
        **_KEYS,
        "OPORA_DATABASE_URL": stores.database_url,
        "OPORA_REDIS_URL": stores.redis_url,
        "OPORA_QDRANT_URL": stores.qdrant_url,
        "OPORA_FILES_URL": (folder / "files").resolve().as_uri(),
        "OPORA_FETCH_MODELS": "false",
        "OPORA_WORKER": "external",
        "OPORA_LOG_LEVEL": os.environ.get("OPORA_LOG_LEVEL", "ERROR"),
    }


@contextmanager
def sharing(stores: Stores, folder: Path) -> Iterator[None]:
    """Make this process part of the same installation in this block."""
    before = dict(os.environ)
    os.environ.update({**variables_of(stores, folder), "OPORA_DATA_DIR": str(folder / "bench")})
    get_settings.cache_clear()
    try:
        yield
    finally:
        bus.close_all()
        claims.close_all()
        index.close_all()
        database.close_all()
        os.environ.clear()
        os.environ.update(before)
        get_settings.cache_clear()


def main() -> int:
    """Run, count, print."""
    from tests import fake_qdrant, servers  # of the checkout; a wheel has none

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--askers", type=int, default=16)
    parser.add_argument("--kills", type=int, default=3)
    arguments = parser.parse_args()
    qdrant = os.environ.get("OPORA_TEST_QDRANT_URL", "")
    with (
        TemporaryDirectory() as folder,
        servers.postgres() as database_url,
        servers.redis() as redis_url,
        fake_qdrant.running() as fake,
    ):
        stores, place = Stores(database_url, redis_url, qdrant or fake), Path(folder)
        with sharing(stores, place), serving(stores, place) as installation:
            counts = run(installation, seconds=arguments.seconds, askers=arguments.askers, kills=arguments.kills)
    table = Table("what", "count", title="" if qdrant else "with a fake in place of Qdrant's server")
    for name, number in asdict(counts).items():
        table.add_row(name.replace("_", " "), str(number))
    Console(stderr=True).print(table)
    result = {"schema": "replicas.v1", **asdict(counts), "flawless": counts.is_flawless}
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0 if counts.is_flawless else 1


if __name__ == "__main__":
    sys.exit(main())

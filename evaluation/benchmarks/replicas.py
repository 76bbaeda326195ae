"""Two replicas and two workers on one PostgreSQL, Redis and Qdrant, killed in turn under load.

Counted are answers that the audit lacks or holds differently; questions with two answers; streams that did not end at
the other replica; messages of a chat that were lost, stored twice or answered twice or never; calls beyond a limit
shared by both replicas; jobs that were lost or ran twice. A killed process starts again with an empty data folder,
which must not matter. `evaluation.benchmarks.scale` and `tests/service/test_replicas.py` run it.
"""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from uuid import uuid4

import httpx

from evaluation.benchmarks import server
from evaluation.benchmarks.server import Process, await_ready, free_port, token_for
from evaluation.benchmarks.streams import read_events
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.chats import store
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import documents
from tenants.work import jobs

ACME, LIMITED = "acme", "limited"
LIMIT = 5

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
    messages: int = 0
    undelivered: int = 0
    lost: int = 0
    otherwise: int = 0
    doubled: int = 0
    unanswered: int = 0
    broken_streams: int = 0
    over_limit: int = 0
    jobs_not_done: int = 0
    documents_wrong: int = 0
    messages_wrong: int = 0
    chain_faults: int = 0


_NAMES = [one.name for one in fields(Counts)]
FAULTS = tuple(_NAMES[_NAMES.index("lost") :])


class Node(Process):
    """A process of the installation; every start has an empty data folder."""

    def __init__(self, folder: Path, name: str, *command: str, **variables: str) -> None:
        super().__init__(*command, **variables)
        self._homes = (str(folder / f"{name}-{number}") for number in count())

    def launch(self) -> None:
        self.start(OPORA_DATA_DIR=next(self._homes))


class Replica(Node):
    """A service on a port that it keeps."""

    def __init__(self, folder: Path, name: str, **variables: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(folder, name, "serve", "--host", "127.0.0.1", "--port", str(self.port), **variables)

    def await_ready(self) -> None:
        await_ready(self, self.port)


@dataclass(frozen=True, slots=True)
class Installation:
    """Two replicas that serve, two workers, and tokens of their two tenants."""

    replicas: tuple[Replica, Replica]
    workers: tuple[Node, Node]
    token: str
    limited: str

    def url(self, number: int) -> str:
        return self.replicas[number % 2].url


@dataclass(slots=True)
class _Run:
    installation: Installation
    until: float
    numbers: Iterator[int] = field(default_factory=count)
    counts: Counts = field(default_factory=Counts)
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Turn and text that a client got, by question."""
    doubled: Counter[str] = field(default_factory=Counter)
    allowed: list[float] = field(default_factory=list)
    jobs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    chat_id: str = ""
    messages: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def turns(self) -> Iterator[int]:
        for number in count():
            if time.monotonic() >= self.until:
                return
            yield number

    def take(self, question: str, turn_id: str, text: str) -> None:
        with self.lock:
            self.counts.answered += 1
            earlier = self.answers.setdefault(question, (turn_id, text))
            self.doubled[question] += earlier[0] != turn_id

    def increment(self, name: str) -> None:
        with self.lock:
            setattr(self.counts, name, getattr(self.counts, name) + 1)


def _ask(run: _Run, client: httpx.Client, asker: int) -> None:
    """Ask until the time is over; a failed request is repeated at the other replica."""
    for turn in run.turns():
        number = next(run.numbers)
        question = f"Что означает код E{10 + number % len(_TOPICS)}? Обращение {number}."
        if turn % 3 == 2:
            _follow(run, client, question, number + asker, moving=turn % 2 == 0)
        elif reply := _accepted(run, client, "/ask/run", number + asker, json={"question": question}):
            answer = reply.json()
            run.take(question, answer["turn_id"], answer["answer"]["text"])
        else:
            run.increment("unanswered")


def _accepted(run: _Run, client: httpx.Client, path: str, first: int, **content: object) -> httpx.Response | None:
    """Send a request to the replicas in turn until one accepts it; None if none does for minutes."""
    until, headers = time.monotonic() + _PATIENCE_SECONDS, {"Idempotency-Key": str(uuid4())}
    for at in count(first):
        try:
            reply = client.post(f"{run.installation.url(at)}{path}", headers=headers, **content)  # type: ignore[arg-type]
            if reply.is_success:
                return reply
        except httpx.TransportError:
            pass
        if time.monotonic() >= until:
            return None
        time.sleep(0.1)
    return None


def _follow(run: _Run, client: httpx.Client, question: str, first: int, *, moving: bool) -> None:
    """Read a stream to its end, switching replicas if needed.

    :param moving: leave the first replica after the first event, although it works.
    """
    key, last, until = str(uuid4()), "", time.monotonic() + _PATIENCE_SECONDS
    run.increment("streamed")
    result: tuple[str, str] | None = None
    for at in count(first):
        if time.monotonic() >= until:
            run.increment("broken_streams")
            return
        headers = {"Idempotency-Key": key, **({"Last-Event-ID": last} if last else {})}
        url = f"{run.installation.url(at)}/ask/stream"
        try:
            with client.stream("POST", url, json={"question": question}, headers=headers) as reply:
                if reply.status_code != 200:
                    time.sleep(0.1)
                    continue
                for event in read_events(reply.iter_lines()):
                    if _goes_back(event.event_id, last):
                        run.increment("broken_streams")
                    last = event.event_id
                    if event.name == "result":
                        result = event.data["turn_id"], event.data["answer"]["text"]
                    elif event.name == "done" and result is not None:
                        run.take(question, *result)
                        return
                    elif event.name == "error":
                        last, result = "", None
                        break
                    elif moving and at == first:
                        run.increment("moved")
                        break
        except httpx.TransportError:
            if last:
                run.increment("moved")
        time.sleep(0.05)


def _goes_back(event_id: str, last: str) -> bool:
    """Whether an event of the same turn is not after the last one."""
    turn, _, number = event_id.rpartition(":")
    last_turn, _, last_number = last.rpartition(":")
    return turn == last_turn and int(number) <= int(last_number)


def _press(run: _Run, client: httpx.Client) -> None:
    """Ask more often than the limit allows, at both replicas in turn."""
    for at in run.turns():
        try:
            reply = client.post(f"{run.installation.url(at)}/ask/run", json={"question": "Что такое E10?"})
        except httpx.TransportError:
            continue
        if reply.status_code == 200:
            run.allowed.append(time.monotonic())
        elif reply.status_code == 429:
            run.increment("refused_by_limit")
        time.sleep(0.2)


def _load(run: _Run, client: httpx.Client) -> None:
    """Upload files to any replica; each acknowledged upload is a job."""
    for batch in run.turns():
        names = tuple(f"load-{batch}-{number}.md" for number in range(3))
        files = [("files", (name, f"# {name}\n\nСтатья {name}.\n".encode())) for name in names]
        if reply := _accepted(run, client, "/documents", batch, files=files):
            run.jobs[reply.json()["job_id"]] = names
        time.sleep(0.5)


def _chat(run: _Run, client: httpx.Client) -> None:
    if reply := _accepted(run, client, "/chats", 0, json={}):
        run.chat_id = reply.json()["chat_id"]
    for turn in run.turns():
        text = f"Что означает код E{10 + turn % len(_TOPICS)}? Сообщение {turn}."
        message = {"text": text, "client_id": f"m{turn}"}
        if _accepted(run, client, f"/chats/{run.chat_id}/messages", turn, json=message):
            run.messages.append(text)
        until = time.monotonic() + _PATIENCE_SECONDS
        for at in count(turn + 1):
            with suppress(httpx.TransportError):
                if _is_answered(client, f"{run.installation.url(at)}/chats/{run.chat_id}/events"):
                    break
            if time.monotonic() >= until:
                return
            time.sleep(0.2)


def _is_answered(client: httpx.Client, url: str) -> bool:
    """Follow a chat, as the widget does, until the answer is there. A replica answers what it then finds open."""
    with client.stream("GET", url) as reply:
        for event in read_events(reply.iter_lines()):
            said = event.data["messages"] if event.name == "snapshot" else [event.data]
            if event.name == "result" or (said and said[-1].get("author") == "bot"):
                return True
    return False


@contextmanager
def serving(stores: Stores, folder: Path) -> Iterator[Installation]:
    """Run two replicas, two workers and their tenants until the block ends. Requires the settings of `sharing`."""
    variables = variables_of(stores, folder)
    replicas = (Replica(folder, "first", **variables), Replica(folder, "second", **variables))
    workers = (Node(folder, "worker-1", "worker", **variables), Node(folder, "worker-2", "worker", **variables))
    for tenant_id, limit in ((ACME, 0), (LIMITED, LIMIT)):
        Registry().add(tenant_id)
        with acting_as(Tenant(tenant_id, "bench")):
            policy.change(rate_limit_per_minute=limit, rate_limit_per_day=0)
    installation = Installation(replicas, workers, token_for(ACME, *SCOPES), token_for(LIMITED, *SCOPES))
    try:
        for process in (*replicas, *workers):
            process.launch()
        for replica in replicas:
            replica.await_ready()
        for token in (installation.token, installation.limited):
            with _client(token) as client:
                client.post(f"{replicas[0].url}/ingest/run", json={"documents": _ARTICLES}).raise_for_status()
        yield installation
    finally:
        for process in (*replicas, *workers):
            process.end()


def _client(token: str) -> httpx.Client:
    return httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=70)


def run(installation: Installation, *, seconds: float, askers: int, kills: int) -> Counts:
    """Ask, load and follow for that long, killing each replica and worker in turn, and count."""
    shared = _Run(installation, time.monotonic() + seconds)
    _press_all(shared, seconds, askers, kills)
    _await_jobs(shared)
    for process in (*installation.replicas, *installation.workers):
        process.end()
    _count(shared)
    return shared.counts


def _press_all(run: _Run, seconds: float, askers: int, kills: int) -> None:
    token, limited = run.installation.token, run.installation.limited
    tasks: list[tuple[Callable[..., None], str, tuple[int, ...]]] = [(_ask, token, (at,)) for at in range(askers)]
    tasks += [(_press, limited, ()), (_load, token, ()), (_chat, token, ())]

    def work(task: Callable[..., None], token: str, arguments: tuple[int, ...]) -> None:
        with _client(token) as client:
            task(run, client, *arguments)

    threads = [Thread(target=work, args=task) for task in tasks]
    for thread in threads:
        thread.start()
    for number in range(kills):
        time.sleep(max(0.0, run.until - seconds + seconds * (number + 1) / (kills + 1) - time.monotonic()))
        victim = (*run.installation.replicas, *run.installation.workers)[number % 4]
        victim.end(signal.SIGKILL)
        run.increment("kills")
        time.sleep(min(2.0, seconds / 10))
        victim.launch()
        if isinstance(victim, Replica):
            victim.await_ready()
    for thread in threads:
        thread.join()


def _await_jobs(run: _Run) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    with acting_as(Tenant(ACME, "bench")):
        while jobs.open_jobs() and time.monotonic() < until:
            time.sleep(0.2)
    run.counts.jobs = len(run.jobs)


def _count(run: _Run) -> None:
    counts = run.counts
    with acting_as(Tenant(ACME, "bench")):
        recorded = {turn.turn_id: turn for turn in search.find(search.TurnQuery(), limit=1_000_000)}
        delivered = {turn_id for turn_id, _ in run.answers.values()}
        counts.undelivered = len(recorded.keys() - delivered)
        for turn_id, text in run.answers.values():
            record = recorded.get(turn_id)
            if record is None:
                counts.lost += 1
            elif text not in json.dumps(record.content, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"'):
                counts.otherwise += 1
        counts.doubled = sum(times > 0 for times in run.doubled.values())
        counts.chain_faults = len(search.verify().faults)
        expected_chat = [part for text in run.messages for part in (text, "bot")]
        spoken = [one for one in store.messages(run.chat_id) if one.author in ("customer", "bot")]
        chat = [one.text if one.author == "customer" else one.author for one in spoken]
        counts.messages, counts.messages_wrong = len(run.messages), int(chat != expected_chat)
        done = {job.job_id: job for job in jobs.latest(limit=1_000_000)}
        counts.jobs_not_done = sum(done[job_id].state != "done" for job_id in run.jobs)
        uploaded = {name for names in run.jobs.values() for name in names}
        expected = uploaded | {str(article["doc_id"]) for article in _ARTICLES}
        counts.documents_wrong = len(expected ^ {record.doc_id for record in documents.all()})
    for moment in run.allowed:
        within = sum(moment <= other < moment + 60 for other in run.allowed)
        counts.over_limit = max(counts.over_limit, within - LIMIT)


def variables_of(stores: Stores, folder: Path) -> dict[str, str]:
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
    with server.installation(folder / "bench", **variables_of(stores, folder)):
        yield

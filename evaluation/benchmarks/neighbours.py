"""`python -m evaluation.benchmarks.neighbours`: what one tenant's attack costs another one's questions.

A real service with two tenants. One asks, first alone, then while the other does its worst, one way after the other:
patterns that backtrack, tools that take their time, an ingest of one-letter sentences, endless and silent connections,
uploads until the disk is full, floods of personal data. A table goes to standard error, the same as JSON to standard
output; the exit code is 1 when the 95th percentile of a neighbour is more than three times its idle value.
"""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.benchmarks.load import Client
from evaluation.benchmarks.server import Served, serving
from settings import get_settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES
from tenants.storage import database

SCHEMA = "bench-neighbours.v1"
SECONDS = 15.0
MOST = 3.0
"""What an attack may make of a neighbour's 95th percentile, as a multiple of the idle one."""

ATTACKER, NEIGHBOUR = "mallory", "acme"
QUESTION = "Что значит код E20?"
_ARTICLE = {
    "doc_id": "errors.md",
    "title": "Коды ошибок стиральной машины",
    "text": "## E20\n\nКод E20 означает, что вода не сливается. Очистите фильтр сливного насоса и проверьте шланг.\n",
}
_PACE_SECONDS = 0.05
"""Between two questions of the neighbour, as of somebody who reads."""

_ASKERS = 4
_SILENT = 300
_ENDLESS = 3
_PAUSE_SECONDS = 0.25
"""Between two questions of an attacker: four of them ask 960 a minute, as sixteen visitors at their limit do."""
_TOKEN_SECONDS = 3_600
_LAST = 10
"""Niceness of whoever attacks: their processors are not the service's."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Of the neighbour under one attack: how many questions it asked, how many failed, and milliseconds."""

    attack: str
    questions: int
    failed: int
    p50: float
    p95: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Target:
    """The service as the attacker sees it."""

    port: int
    headers: Mapping[str, str]

    def client(self) -> httpx.Client:
        """A client of the attacker's."""
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=self.headers, timeout=120)


Attack = Callable[[Target], AbstractContextManager[None]]


@contextmanager
def _repeating(
    target: Target, act: Callable[[httpx.Client, int], object], clients: int = _ASKERS, pause: float = 0.0
) -> Iterator[None]:
    """Several clients do the same again and again; what they are answered is nobody's concern."""
    stop = Event()

    def work(first: int) -> None:
        with target.client() as client:
            number = first
            while not stop.is_set():
                with suppress(httpx.HTTPError):
                    act(client, number)
                number += clients
                stop.wait(pause)

    with ThreadPoolExecutor(clients, "attack") as pool:
        for first in range(clients):
            pool.submit(work, first)
        try:
            yield
        finally:
            stop.set()


def _tool(target: Target, name: str, url: str, pattern: str) -> None:
    tool = {
        "name": name,
        "title": "Накладные",
        "description": "Где накладная с номером",
        "url": url,
        "parameters": {"properties": {"number": {"type": "string", "pattern": pattern}}, "required": ["number"]},
        "timeout_seconds": 20,
    }
    with target.client() as client:
        client.put("/tools", json=tool).raise_for_status()


def _without_tool(target: Target, name: str) -> None:
    with target.client() as client:
        client.delete(f"/tools/{name}")


@contextmanager
def patterns(target: Target) -> Iterator[None]:
    """A tool's pattern that takes exponential time where a matcher backtracks."""
    _tool(target, "patterns", "https://tools.example/", r"\w{1,40}" * 5 + "!")
    act = _repeating(
        target, lambda client, number: _ask(client, f"Где накладная {'а' * 800} {number}?"), pause=_PAUSE_SECONDS
    )
    with act:
        yield
    _without_tool(target, "patterns")


@contextmanager
def slow_tools(target: Target) -> Iterator[None]:
    """A tool that does not answer, asked by several at once."""
    go = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            go.wait(30)

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as far:
        far.daemon_threads = True
        listening = Thread(target=far.serve_forever, daemon=True)
        listening.start()
        _tool(target, "slow", f"http://127.0.0.1:{far.server_port}/", r"\b\d{7}\b")
        act = _repeating(target, lambda client, number: _ask(client, f"Где накладная {1_000_000 + number}?"), 8)
        with act:
            yield
            go.set()
        _without_tool(target, "slow")
        far.shutdown()
        listening.join()


@contextmanager
def costly_ingest(target: Target) -> Iterator[None]:
    """Megabytes of one-letter sentences."""
    texts = [{"doc_id": f"letters-{number}", "text": "А. " * 16_000} for number in range(8)]
    with _repeating(target, lambda client, _: client.post("/ingest/run", json={"documents": texts}), 1):
        yield


@contextmanager
def connections(target: Target) -> Iterator[None]:
    """Heads without end, and hundreds of connections that say nothing."""
    stop = Event()

    def endless() -> None:
        while not stop.is_set():
            with suppress(OSError), closing(_connected(target)) as line:
                line.sendall(b"GET /healthz HTTP/1.1\r\nHost: opora\r\n")
                while not stop.is_set():
                    line.sendall(b"X-Long: " + b"x" * 60_000 + b"\r\n")

    with ExitStack() as stack, ThreadPoolExecutor(_ENDLESS, "attack") as pool:
        for _ in range(_SILENT):
            with suppress(OSError):
                stack.enter_context(closing(_connected(target)))
        for _ in range(_ENDLESS):
            pool.submit(endless)
        try:
            yield
        finally:
            stop.set()


@contextmanager
def full_disk(target: Target) -> Iterator[None]:
    """Uploads as fast as they go."""
    data = os.urandom(2_000_000)

    def upload(client: httpx.Client, number: int) -> None:
        client.post("/documents", files=[("files", (f"blob-{number}.txt", data))])

    with _repeating(target, upload, 2):
        yield


@contextmanager
def personal_data(target: Target) -> Iterator[None]:
    """Questions full of what has to be masked, that open tickets."""
    numbers = " ".join(f"+7 916 {100 + number} {10 + number % 80} 45" for number in range(60))

    def ask(client: httpx.Client, number: int) -> None:
        _ask(client, f"Отмените заказ {number}, карта 4111 1111 1111 1111, {numbers}", session_id=f"s{number % 9}")

    with _repeating(target, ask, pause=_PAUSE_SECONDS):
        yield


ATTACKS: Mapping[str, Attack] = {
    "patterns": patterns,
    "slow tools": slow_tools,
    "costly ingest": costly_ingest,
    "connections": connections,
    "full disk": full_disk,
    "personal data": personal_data,
}
"""What once held up every tenant, each in a form of its own."""


def measured(port: int, token: str, seconds: float, least: int = 20) -> tuple[list[float], int]:
    """Milliseconds of the neighbour's questions, and how many failed."""
    client, spent, failed = Client(port, token), list[float](), 0
    until = monotonic() + seconds
    while monotonic() < until or len(spent) < least:
        reply = client.ask(f"{QUESTION} {len(spent)}")
        spent.append(reply.milliseconds)
        failed += reply.outcome != "answered"
        Event().wait(_PACE_SECONDS)
    client.close()
    return spent, failed


def compare(port: int, seconds: float, attacks: Mapping[str, Attack] = ATTACKS) -> Iterator[Measurement]:
    """The neighbour alone, then under each attack."""
    tokens = {
        tenant: issue(get_settings(), tenant, scopes=SCOPES, subject="anna", ttl_seconds=_TOKEN_SECONDS)
        for tenant in (ATTACKER, NEIGHBOUR)
    }
    target = Target(port, {"Authorization": f"Bearer {tokens[ATTACKER]}"})
    measured(port, tokens[NEIGHBOUR], 0)
    idle, failed = measured(port, tokens[NEIGHBOUR], seconds)
    yield _measurement("none", idle, failed, idle)
    for name, attack in attacks.items():
        with _elsewhere(attack, target):
            under, failed = measured(port, tokens[NEIGHBOUR], seconds)
        yield _measurement(name, under, failed, idle)


@contextmanager
def _elsewhere(attack: Attack, target: Target) -> Iterator[None]:
    """The attack as from a machine of its own: in another process, which leaves the processors to the service."""
    processes = get_context("spawn")
    under_way, over = processes.Event(), processes.Event()
    attacker = processes.Process(target=_attack, args=(attack, target, under_way, over))
    attacker.start()
    try:
        while not under_way.wait(1):
            if not attacker.is_alive():
                raise RuntimeError("the attack did not begin")
        yield
    finally:
        over.set()
        attacker.join()


def _attack(attack: Attack, target: Target, under_way: ProcessEvent, over: ProcessEvent) -> None:
    os.nice(_LAST)
    with attack(target):
        under_way.set()
        over.wait()


def _measurement(name: str, spent: list[float], failed: int, idle: list[float]) -> Measurement:
    p50, p95 = (float(value) for value in np.percentile(spent, (50, 95)))
    return Measurement(
        name, len(spent), failed, round(p50, 1), round(p95, 1), round(p95 / float(np.percentile(idle, 95)), 2)
    )


def _ask(client: httpx.Client, question: str, **more: str) -> httpx.Response:
    return client.post("/ask/run", json={"question": question, **more})


def _connected(target: Target) -> socket.socket:
    return socket.create_connection(("127.0.0.1", target.port), 10)


@contextmanager
def served() -> Iterator[Served]:
    """A service with both tenants, of which each knows an article."""
    with TemporaryDirectory() as folder:
        os.environ |= {"OPORA_DATA_DIR": folder, "OPORA_MODELS_DIR": str(get_settings().models)}
        get_settings.cache_clear()
        for tenant in (ATTACKER, NEIGHBOUR):
            Registry().add(tenant, locale="ru")
        limits = {"OPORA_TOOL_NETWORKS": "127.0.0.0/8", "OPORA_QUEUED_BYTES": "50000000"}
        with serving(Path(folder), **limits) as running:
            for tenant in (ATTACKER, NEIGHBOUR):
                token = issue(get_settings(), tenant, scopes=SCOPES, subject="anna", ttl_seconds=_TOKEN_SECONDS)
                with Target(running.port, {"Authorization": f"Bearer {token}"}).client() as client:
                    client.post("/ingest/run", json={"documents": [_ARTICLE]}).raise_for_status()
            yield running
        database.close_all()


def main() -> int:
    """Measure and print; 1 when a neighbour suffers."""
    with served() as running:
        results = list(compare(running.port, SECONDS))
    table = Table("attack", "questions", "failed", "p50 ms", "p95 ms", "of idle")
    for one in results:
        shown = [str(value) for value in asdict(one).values()]
        table.add_row(*shown, style="red" if one.ratio > MOST or one.failed else "")
    Console(stderr=True).print(table)
    sys.stdout.write(json.dumps({"schema": SCHEMA, "results": [asdict(one) for one in results]}, indent=2) + "\n")
    return 1 if any(one.ratio > MOST or one.failed for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())

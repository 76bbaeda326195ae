"""`python -m evaluation.bench_traces`: what traces cost, and that no trace server can hold an answer up.

Services over copies of the demo shop run side by side: two without traces, which shows how far two measurements of the
same thing lie apart, and one for each trace server: one that takes everything, one that takes words too, one that
refuses connections, one that never answers, and one that takes a second and a half to. All are asked the same questions
in turns, in a new order each time. What a trace costs is measured apart as well, in this process: on the turn's thread,
and where it is made and encoded.

A table goes to standard error, the same as JSON to standard output; the exit code is 1 when a promise does not hold.
"""

import argparse
import json
import os
import random
import shutil
import socketserver
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import thread_time
from uuid import uuid4

import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.fixture import DEMO, questions
from evaluation.load import Client, Reply
from evaluation.server import Served, serving
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.tracing.otlp import encode
from pipelines.ask.tracing.sender import Sender
from pipelines.ask.tracing.spans import resource, spans
from pipelines.ask.tracing.trace import Trace
from pipelines.ask.usecase import Ask, begin
from pipelines.ingest.usecase import Ingest
from settings import Settings, get_settings
from tenants import database, index, policy, traces
from tenants.context import SCOPES, Tenant, acting_as
from tenants.registry import Registry
from tenants.tokens import issue

SHOP, TALKATIVE = Tenant("shop", "bench", SCOPES), Tenant("talkative", "bench", SCOPES)
OFF = "off"
IN_TROUBLE = ("refused", "hanging", "slow")
MOST_SLOWDOWN = 1.05
MOST_CPU_MS = 3.0
_SLOW_SECONDS = 1.5
_WARM_UP = 40
_BLOCK = 5
"""Questions that one service is asked in a row: long enough for traces to be in its way, short enough for all services
to meet the same load of the machine."""


@dataclass(frozen=True, slots=True)
class Line:
    """One service. `slowdown` is how many times longer the median question takes than in the service without traces,
    question by question; `cpu_ms` CPU of its process a turn."""

    p50_ms: float
    p99_ms: float
    slowdown: float
    cpu_ms: float
    failed: int


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds of one trace, p50: on the turn's thread, and made and encoded aside; its size and spans."""

    on_path_ms: float
    aside_ms: float
    spans: int
    kilobytes: float


@dataclass(frozen=True, slots=True)
class Result:
    """Everything measured. `taken` are the bytes that the servers which take traces were sent."""

    services: Mapping[str, Line]
    traces: Mapping[str, Cost]
    taken: int

    @property
    def holds(self) -> bool:
        """Whether everything is as promised."""
        lines = [self.services[name] for name in IN_TROUBLE]
        return (
            not any(line.failed for line in self.services.values())
            and all(line.slowdown < MOST_SLOWDOWN for line in lines)
            and all(cost.on_path_ms + cost.aside_ms <= MOST_CPU_MS for cost in self.traces.values())
            and self.taken > 0
        )


class _TakesTraces(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    after = 0.0
    taken = 0

    def do_POST(self) -> None:
        _TakesTraces.taken += len(self.rfile.read(int(self.headers["Content-Length"])))
        Event().wait(self.after)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class _TakesLong(_TakesTraces):
    after = _SLOW_SECONDS


class _NeverAnswers(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        """Read on and on."""
        while self.request.recv(65_536):
            pass


class _Quiet(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is nothing to tell of."""


class _Web(_Quiet, ThreadingHTTPServer):
    pass


@contextmanager
def listening(server: socketserver.TCPServer) -> Iterator[str]:
    """A trace server's address, for as long as the block lasts."""
    Thread(target=server.serve_forever, daemon=True).start()
    host, port = server.server_address[:2]
    try:
        yield f"http://{host!s}:{port}"
    finally:
        server.shutdown()
        server.server_close()


def measure(folder: Path, rounds: int) -> Result:
    """Prepare, serve side by side, ask, and measure one trace alone."""
    tokens = _prepared()
    asked = questions_of_the_shop()
    costs = {"figures": _cost(SHOP, asked), "words": _cost(TALKATIVE, asked)}
    index.close_all()
    database.close_all()
    anywhere = ("127.0.0.1", 0)
    with ExitStack() as running:
        taking = running.enter_context(listening(_Web(anywhere, _TakesTraces)))
        slow = running.enter_context(listening(_Web(anywhere, _TakesLong)))
        hanging = running.enter_context(listening(_Quiet(anywhere, _NeverAnswers)))
        with listening(_Quiet(anywhere, _NeverAnswers)) as refused:
            pass
        addresses = {
            OFF: "",
            "off again": "",
            "taken": taking,
            "taken with words": taking,
            "refused": refused,
            "hanging": hanging,
            "slow": slow,
        }
        served = {}
        for name, address in addresses.items():
            place = folder.with_name(name.replace(" ", "-"))
            shutil.copytree(folder, place)
            served[name] = running.enter_context(serving(place, OPORA_PHOENIX_URL=address))
        chosen = {name: tokens["words" in name] for name in addresses}
        return Result(_asked(served, chosen, asked, rounds), costs, _TakesTraces.taken)


def _asked(
    served: Mapping[str, Served], tokens: Mapping[str, str], asked: Sequence[str], rounds: int
) -> dict[str, Line]:
    clients = {name: Client(one.port, tokens[name]) for name, one in served.items()}
    replies: dict[str, list[Reply]] = {name: [] for name in served}
    order = random.Random(7)  # noqa: S311
    for client in clients.values():
        for question in asked[:_WARM_UP]:
            client.ask(question)
    before = {name: one.cpu_seconds() for name, one in served.items()}
    for _ in range(rounds):
        block = order.sample(asked, _BLOCK)
        for name in order.sample(list(clients), len(clients)):
            replies[name] += [clients[name].ask(question) for question in block]
    spent = {name: one.cpu_seconds() - before[name] for name, one in served.items()}
    for client in clients.values():
        client.close()
    times = {name: [reply.milliseconds for reply in found] for name, found in replies.items()}
    base = np.array(times[OFF])
    return {
        name: Line(
            p50_ms=float(np.percentile(found, 50)),
            p99_ms=float(np.percentile(found, 99)),
            slowdown=float(np.percentile(np.array(found) / base, 50)),
            cpu_ms=spent[name] * 1_000 / len(found),
            failed=sum(reply.failed for reply in replies[name]),
        )
        for name, found in times.items()
    }


def _cost(tenant: Tenant, asked: Sequence[str]) -> Cost:
    """What one trace takes, measured on turns that were really made."""
    ask = Ask()
    ask.engine.warm_up()
    sender = Sender(Settings(phoenix_url="http://127.0.0.1:9"))
    path, aside, made, size = [], [], [], []
    with acting_as(tenant):
        for question in asked:
            request, turn_id = AskRequest(question=question, session_id="bench"), str(uuid4())
            begun = begin(request, turn_id)
            turn, steps = ask.finish(begun)
            answer = answer_of(turn, trace_id=traces.trace_id(turn_id), steps=steps.milliseconds)
            started = thread_time()
            trace = Trace.of(request, begun, steps, answer, asked=datetime.now(UTC), pipeline="bench")
            sender.take(trace)
            taken = thread_time()
            found = spans(trace)
            encoded = encode(answer.trace_id, found, resource(trace))
            aside.append((thread_time() - taken) * 1_000)
            path.append((taken - started) * 1_000)
            made.append(len(found))
            size.append(len(encoded) / 1_000)
    ask.close()
    p50 = [float(np.percentile(column, 50)) for column in (path, aside, made, size)]
    return Cost(p50[0], p50[1], int(p50[2]), p50[3])


def _prepared() -> tuple[str, str]:
    """The demo shop twice, once with its words traced; a token for each."""
    for tenant in (SHOP, TALKATIVE):
        Registry().add(tenant.tenant_id)
        with acting_as(tenant):
            Ingest().run_path(DEMO / "ru")
    with acting_as(TALKATIVE):
        policy.change(trace_content=True)
    plain, words = (
        issue(get_settings(), tenant.tenant_id, scopes=("ask",), subject=tenant.subject, ttl_seconds=86_400)
        for tenant in (SHOP, TALKATIVE)
    )
    return plain, words


def questions_of_the_shop() -> list[str]:
    """What the demo shop can answer, and what it refuses; nothing that opens a ticket."""
    articles = [
        line.lstrip("# ") for path in sorted((DEMO / "ru").glob("*.md")) for line in path.open(encoding="utf-8")
    ]
    headings = [line.strip() for line in articles if line.strip() and len(line) < 60]
    return [*random.Random(7).sample(headings, 150), *questions().refused]  # noqa: S311


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    with TemporaryDirectory() as place:
        folder = Path(place, "data")
        os.environ["OPORA_DATA_DIR"] = str(folder)
        get_settings.cache_clear()
        result = measure(folder, options.rounds)
    console = Console(stderr=True)
    table = Table("trace server", "p50 ms", "p99 ms", "against off", "CPU ms a turn", "failed")
    for name, line in result.services.items():
        figures = f"{line.p50_ms:.2f}", f"{line.p99_ms:.2f}", f"{line.slowdown:.3f}", f"{line.cpu_ms:.2f}"
        table.add_row(name, *figures, str(line.failed))
    console.print(table)
    table = Table("one trace", "CPU ms on the turn's thread", "CPU ms aside", "spans", "kB")
    for name, cost in result.traces.items():
        table.add_row(name, f"{cost.on_path_ms:.3f}", f"{cost.aside_ms:.2f}", str(cost.spans), f"{cost.kilobytes:.0f}")
    console.print(table)
    sys.stdout.write(
        json.dumps({"schema": "bench_traces.v1", **asdict(result), "holds": result.holds}, indent=2) + "\n"
    )
    sys.exit(0 if result.holds else 1)


if __name__ == "__main__":
    main()

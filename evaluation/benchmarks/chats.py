"""`python -m evaluation.benchmarks.chats`: how quickly a chat's events come, and what visitors cost who only look.

A real service over the demo's knowledge base, asked from another process. Figures go to standard output as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from queue import SimpleQueue
from socket import create_connection, socket
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread
from time import monotonic

import numpy as np

from evaluation.benchmarks.server import Served, serving, watched
from evaluation.benchmarks.streams import TIMEOUT_SECONDS, Event, read_events
from evaluation.datasets.fixture import questions
from settings import ROOT, get_settings
from tenants.access.tokens import issue
from tenants.storage import database

SCHEMA = "bench-chats.v1"
ROUNDS = 60
WARM_UP = 5
VISITORS = 500
SETTLE_SECONDS = 20.0
LIMITS = {
    "first_event_ms_p95": 50.0,
    "reply_ms_p95": 300.0,
    "idle_visitors_mb": 150.0,
    "healthz_ms_highest": 100.0,
}
"""Upper limit of each figure."""

_TENANT = "demo-ru"
_TOKEN_SECONDS = 3_600


class Caller:
    """A person with a token, on a persistent connection."""

    def __init__(self, served: Served, subject: str, scope: str) -> None:
        token = issue(get_settings(), _TENANT, scopes=(scope,), subject=subject, ttl_seconds=_TOKEN_SECONDS)
        self.port = served.port
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = HTTPConnection("127.0.0.1", served.port, timeout=TIMEOUT_SECONDS)

    def post(self, path: str, **fields: object) -> Mapping[str, object]:
        """Send a request; return the answer."""
        self._connection.request("POST", path, json.dumps(fields).encode(), self.headers)
        response = self._connection.getresponse()
        answer: Mapping[str, object] = json.loads(response.read() or b"{}")
        if response.status >= 400:
            raise RuntimeError(str(answer))
        return answer

    def begin(self) -> str:
        """Begin a chat; return its path."""
        return f"/chats/{self.post('/chats')['chat_id']}"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def following(caller: Caller, chat: str) -> Iterator["SimpleQueue[Event]"]:
    """Yield the events of a chat with their times, without the snapshot."""
    connection = HTTPConnection("127.0.0.1", caller.port, timeout=TIMEOUT_SECONDS)
    connection.request("GET", f"{chat}/events", headers=caller.headers)
    response = connection.getresponse()
    events: SimpleQueue[Event] = SimpleQueue()
    leaving = Flag()

    def read() -> None:
        try:
            for event in read_events(response):
                events.put(event)
        except (OSError, ValueError, AttributeError):
            # The stream was closed while it was read, which is how it ends here.
            if not leaving.is_set():
                raise

    reader = Thread(target=read, name="events", daemon=True)
    reader.start()
    while events.get(timeout=TIMEOUT_SECONDS).name != "snapshot":
        continue
    try:
        yield events
    finally:
        leaving.set()
        connection.sock.shutdown(2)
        reader.join()
        response.close()
        connection.close()


def until(events: "SimpleQueue[Event]", fits: Callable[[Event], bool]) -> Event:
    """Return the next matching event."""
    while not fits(event := events.get(timeout=TIMEOUT_SECONDS)):
        continue
    return event


def first_events(served: Served) -> dict[str, float]:
    """Measure milliseconds from posting a message until its first event, and until its turn has begun."""
    caller = Caller(served, "asker", "visit")
    asked = [one.question for one in questions().shops["ru"].showcase if one.outcome == "answered"]
    first: list[float] = []
    begun: list[float] = []
    for number in range(ROUNDS + WARM_UP):
        # A chat for each question: what was asked before changes what the next one means.
        chat = caller.begin()
        with following(caller, chat) as events:
            posted_at = monotonic()
            caller.post(f"{chat}/messages", text=asked[number % len(asked)], client_id="c")
            seen = until(events, lambda event: event.name in ("message", "accepted"))
            first.append((seen.at - posted_at) * 1_000)
            if seen.name != "accepted":
                seen = until(events, lambda event: event.name == "accepted")
            begun.append((seen.at - posted_at) * 1_000)
            until(events, lambda event: event.name == "message" and event.data["author"] == "bot")
    caller.close()
    return {
        "first_event_ms_p50": _percentile(first[WARM_UP:], 50),
        "first_event_ms_p95": _percentile(first[WARM_UP:], 95),
        "turn_begun_ms_p95": _percentile(begun[WARM_UP:], 95),
    }


def replies(served: Served) -> dict[str, float]:
    """Measure milliseconds from an operator's sending a reply until it is in the customer's stream."""
    caller, operator = Caller(served, "waiting", "visit"), Caller(served, "olga", "operate")
    chat = caller.begin()
    spent: list[float] = []
    with following(caller, chat) as events:
        for number in range(ROUNDS + WARM_UP):
            sent_at = monotonic()
            operator.post(f"/desk{chat}/reply", text=f"Ответ {number}", seen=1_000_000, name="Ольга")
            event = until(events, lambda one: one.name == "message" and one.data["author"] == "operator")
            spent.append((event.at - sent_at) * 1_000)
    caller.close()
    operator.close()
    return {"reply_ms_p50": _percentile(spent[WARM_UP:], 50), "reply_ms_p95": _percentile(spent[WARM_UP:], 95)}


def idle_visitors(served: Served) -> dict[str, float]:
    """Measure idle visitors with open streams: memory, CPU time, and response times of other requests."""
    streams: list[socket] = []
    opened = [(caller, caller.begin()) for caller in [Caller(served, "v:0", "visit")]]
    with following(*opened[0]):
        before = served.memory_mb("VmRSS")
    try:
        for number in range(VISITORS):
            caller = Caller(served, f"v:{number}", "visit")
            streams.append(_open_stream(caller, caller.begin()))
            caller.close()
        with watched(served.port) as waits:
            used, began_at = served.cpu_seconds(), monotonic()
            Flag().wait(SETTLE_SECONDS)
            processor = (served.cpu_seconds() - used) / (monotonic() - began_at)
        after = served.memory_mb("VmRSS")
    finally:
        for stream in streams:
            stream.close()
        opened[0][0].close()
    return {
        "idle_visitors": float(VISITORS),
        "idle_visitors_mb": after - before,
        "idle_processor_share": processor,
        "healthz_ms_p95": _percentile(waits, 95),
        "healthz_ms_highest": max(waits),
    }


def _open_stream(caller: Caller, chat: str) -> socket:
    """Open a stream and read its snapshot; no thread reads the rest."""
    stream = create_connection(("127.0.0.1", caller.port), TIMEOUT_SECONDS)
    head = f"GET {chat}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {caller.headers['Authorization']}\r\n\r\n"
    stream.sendall(head.encode())
    received = b""
    while b"event: snapshot" not in received:
        piece = stream.recv(65_536)
        if not piece:
            raise RuntimeError("a stream was not opened")
        received += piece
    return stream


def _percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, share))


def main() -> int:
    """Measure and print; 1 when a figure is over its limit."""
    with TemporaryDirectory() as folder:
        os.environ |= {"OPORA_DATA_DIR": folder, "OPORA_MODELS_DIR": str(get_settings().models)}
        get_settings.cache_clear()
        subprocess.run(
            [sys.executable, "-m", "cli", "demo", "--locale", "ru"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True
        )
        figures: dict[str, float] = {}
        with serving(Path(folder), OPORA_CHAT_MESSAGES_PER_MINUTE="0", OPORA_CONNECTIONS_PER_ADDRESS="0") as served:
            for measure in (idle_visitors, replies, first_events):
                measured = measure(served)
                sys.stderr.write(f"{measured}\n")
                figures |= measured
        database.close_all()
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    rounded = {name: round(value, 3) for name, value in figures.items()}
    result = {"schema": SCHEMA, "figures": rounded, "limits": LIMITS, "missed": missed}
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

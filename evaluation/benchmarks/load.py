"""Load client: plain HTTP/1.1 with persistent connections, one thread for each, and little CPU use."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from itertools import cycle, islice
from time import perf_counter

import numpy as np

from evaluation.asking import concurrently

TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response with the milliseconds from the request to its end. Status 0: no reply."""

    status: int
    content: bytes
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `outcome` is empty if the service gave none; then `status` tells the reason (0: no reply)."""

    status: int
    outcome: str
    milliseconds: float
    steps: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether this was anything but a product outcome."""
        return self.status != 200 or self.outcome == "failed"


class Client:
    """A connection to the service."""

    def __init__(self, port: int, token: str = "") -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: object = None) -> HTTPResponse:
        content = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, content, self._headers)
        return self._connection.getresponse()

    def exchange(self, method: str, path: str, body: object = None) -> Exchange:
        """Send a request and read the whole response; a broken connection has status 0."""
        started_at = perf_counter()
        try:
            response = self.send(method, path, body)
            status, content = response.status, response.read()
        except (HTTPException, OSError):
            self.close()
            status, content = 0, b""
        return Exchange(status, content, (perf_counter() - started_at) * 1_000)

    def ask(self, question: str) -> Reply:
        exchange = self.exchange("POST", "/ask/run", {"question": question})
        if exchange.status != 200:
            return Reply(exchange.status, "", exchange.milliseconds)
        answer = json.loads(exchange.content)
        return Reply(200, answer["outcome"], exchange.milliseconds, answer["meta"]["latency_ms_by_step"])

    def close(self) -> None:
        self._connection.close()


def ask_sequentially(port: int, token: str, questions: Iterable[str]) -> list[Reply]:
    with closing(Client(port, token)) as client:
        return [client.ask(question) for question in questions]


def ask_concurrently(
    port: int, token: str, questions: Sequence[str], *, clients: int, total: int
) -> tuple[list[Reply], float]:
    share = total // clients

    def work(number: int) -> list[Reply]:
        first = number * share
        return ask_sequentially(port, token, islice(cycle(questions), first, first + share))

    started_at = perf_counter()
    replies = [reply for part in concurrently(work, range(clients), clients) for reply in part]
    return replies, perf_counter() - started_at


def percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else float("nan")

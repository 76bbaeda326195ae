"""Load client: plain HTTP/1.1 with persistent connections, one thread for each, and little CPU use."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import cycle, islice
from time import perf_counter

TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `outcome` is empty if the service gave none; then `status` tells the reason (0: no reply)."""

    status: int
    outcome: str
    milliseconds: float
    steps: Mapping[str, float] = field(default_factory=dict)
    turn_id: str = ""

    @property
    def failed(self) -> bool:
        """Whether this was anything but a product outcome."""
        return self.status != 200 or self.outcome == "failed"


class Client:
    """A connection to the service.

    :param token: a bearer token with the scope `ask`.
    """

    def __init__(self, port: int, token: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, question: str) -> Reply:
        """Ask one question; a broken connection is a reply with status 0."""
        body = json.dumps({"question": question}).encode()
        started_at = perf_counter()
        try:
            self._connection.request("POST", "/ask/run", body, self._headers)
            response = self._connection.getresponse()
            answer = json.loads(response.read())
        except (HTTPException, OSError, ValueError):
            self._connection.close()
            return Reply(0, "", (perf_counter() - started_at) * 1_000)
        spent = (perf_counter() - started_at) * 1_000
        if response.status != 200:
            return Reply(response.status, "", spent)
        return Reply(200, answer["outcome"], spent, answer["meta"]["latency_ms_by_step"], answer["turn_id"])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def ask_sequentially(port: int, token: str, questions: Iterable[str]) -> list[Reply]:
    """Ask the questions one after another on one connection."""
    client = Client(port, token)
    replies = [client.ask(question) for question in questions]
    client.close()
    return replies


def ask_concurrently(
    port: int, token: str, questions: Sequence[str], *, clients: int, total: int
) -> tuple[list[Reply], float]:
    """Ask `total` questions with `clients` clients at once; return the replies and the total seconds."""
    share = total // clients

    def work(number: int) -> list[Reply]:
        first = number * share
        return ask_sequentially(port, token, islice(cycle(questions), first, first + share))

    started_at = perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        replies = [reply for part in pool.map(work, range(clients)) for reply in part]
    return replies, perf_counter() - started_at

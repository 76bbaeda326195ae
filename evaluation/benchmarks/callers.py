"""People with a token who chat with a running service, and read the events of their chats."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from queue import SimpleQueue
from threading import Event as Flag
from threading import Thread

from evaluation.benchmarks.server import Served
from evaluation.benchmarks.streams import TIMEOUT_SECONDS, Event, read_events
from settings import get_settings
from tenants.access.tokens import issue

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

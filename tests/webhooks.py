"""A receiver of webhooks on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event
from time import monotonic

from tests.servers import Quiet, http

SECONDS = 60.0


@dataclass
class Received:
    """Requests a receiver got, and its response."""

    url: str = ""
    status: int = 200
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    came: Event = field(default_factory=Event)
    release: Event | None = None


@contextmanager
def receiving(status: int = 200, release: Event | None = None) -> Iterator[Received]:
    """Run a receiver on this machine; with `release` it hangs until that is set."""
    received = Received(status=status, release=release)

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
            received.came.set()
            if received.release is not None:
                received.release.wait(SECONDS)
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with http(Handler) as url:
        received.url = f"{url}/hook"
        try:
            yield received
        finally:
            if release is not None:
                release.set()


def wait_until(true: Callable[[], bool]) -> None:
    """Poll until the condition holds."""
    ends = monotonic() + SECONDS
    pause = Event()
    while not true():
        assert monotonic() < ends
        pause.wait(0.01)

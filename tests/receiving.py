"""A server that records requests and sends scripted responses, for code that sends traces and asks Phoenix."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from queue import SimpleQueue

from tests.servers import Quiet, http


@dataclass(frozen=True, slots=True)
class Heard:
    """A request: `method path?query`, its body, and its headers with lower-case names."""

    what: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(slots=True)
class Receiver:
    """Answers with `statuses` one after another, the last one for good, and `bodies` by the beginning of a path.

    `hangs_up`: each answer is the last one of its connection.
    """

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    bodies: dict[str, bytes] = field(default_factory=dict)
    hangs_up: bool = False
    heard: "SimpleQueue[Heard]" = field(default_factory=SimpleQueue)

    def next(self) -> Heard:
        """Return the next request, as soon as there is one."""
        return self.heard.get(timeout=20)


@contextmanager
def receiving(statuses: Sequence[int] = (200,), bodies: dict[str, bytes] | None = None) -> Iterator[Receiver]:
    """Run a receiver while the block lasts."""
    receiver = Receiver(statuses=list(statuses), bodies=bodies or {})

    class Handler(Quiet, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.heard.put(Heard(f"{self.command} {self.path}", body, headers))
            status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
            results = [one for start, one in receiver.bodies.items() if self.path.startswith(start)]
            self.send_response(status)
            self.send_header("Content-Length", str(len(results[0]) if results else 0))
            self.end_headers()
            self.wfile.write(results[0] if results else b"")
            # Without a word of it in the answer, as servers do that have waited for long.
            self.close_connection = receiver.hangs_up

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the standard library's names

    with http(Handler) as receiver.url:
        yield receiver

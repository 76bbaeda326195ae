"""HTTP to model servers, against a server whose every byte is chosen here."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from socket import SHUT_RDWR, create_server, socket
from threading import Event, Thread
from time import sleep

import pytest

from components.models.connections import Connections, ServerError

LEAVE = b"<leave>"
"""In an answer: close the connection here."""

PAUSE = b"<pause>"
"""In an answer: let what came before be read."""
PAUSE_SECONDS = 0.05


def answered(body: bytes, status: str = "200 OK", header: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{header}\r\n".encode() + body


@dataclass
class Server:
    """Answers each request with the next of its answers, on however many connections."""

    listening: socket
    answers: list[Sequence[bytes]]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    left: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def serve(self) -> None:
        while self.answers:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.connections += 1
            # A client that leaves something unread resets the connection.
            with connection, suppress(ConnectionResetError):
                self._serve(connection)

    def _serve(self, connection: socket) -> None:
        while self.answers and (request := connection.recv(65_536)):
            self.requests.append(request)
            for part in self.answers.pop(0):
                if part == LEAVE:
                    return
                if part == PAUSE:
                    sleep(PAUSE_SECONDS)
                else:
                    connection.sendall(part)
        if not connection.recv(1):
            self.left.set()


@pytest.fixture
def given() -> Iterator[ExitStack]:
    with ExitStack() as open_until_the_end:
        yield open_until_the_end


def serving(given: ExitStack, *answers: Sequence[bytes], timeout: float = 5) -> tuple[Server, Connections]:
    server = Server(given.enter_context(create_server(("127.0.0.1", 0))), list(answers))
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    given.callback(thread.join, 5)
    # Wakes it where it still waits for somebody.
    given.callback(suppressing, server.listening.shutdown, SHUT_RDWR)
    return server, given.enter_context(closing(Connections(server.url, timeout)))


def suppressing(work: Callable[[int], object], argument: int) -> None:
    with suppress(OSError):
        work(argument)


def said(connections: Connections) -> bytes:
    return b"".join(connections.post("/api", b"{}", {}))


def test_a_connection_serves_many_requests(given: ExitStack) -> None:
    server, connections = serving(given, [answered(b"one")], [answered(b"two")])
    assert said(connections) == b"one"
    assert said(connections) == b"two"
    assert server.connections == 1
    assert server.requests[0].startswith(b"POST /api HTTP/1.1\r\nHost: 127.0.0.1:")
    assert server.requests[0].endswith(b"\r\n\r\n{}")


def test_one_that_was_closed_meanwhile_is_made_again(given: ExitStack) -> None:
    server, connections = serving(given, [answered(b"one"), LEAVE], [answered(b"two")])
    assert said(connections) == b"one"
    assert said(connections) == b"two"
    assert server.connections == 2


def test_one_that_the_server_will_close_is_not_kept(given: ExitStack) -> None:
    server, connections = serving(given, [answered(b"one", header="Connection: close\r\n")], [answered(b"two")])
    assert said(connections) == b"one"
    assert server.left.wait(5)
    assert said(connections) == b"two"


def test_pieces_come_as_they_are_sent_and_the_end_is_known(given: ExitStack) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server, connections = serving(given, [head, b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"], [answered(b"again")])
    assert said(connections) == b"onetwo"
    assert said(connections) == b"again"
    assert server.connections == 1


def test_an_answer_may_end_with_the_connection(given: ExitStack) -> None:
    _, connections = serving(given, [b"HTTP/1.1 200 OK\r\n\r\n", b"one", b"two", LEAVE])
    assert said(connections) == b"onetwo"


@pytest.mark.parametrize(
    "rest", [b"Content-Length: 9\r\n\r\none", b"Transfer-Encoding: chunked\r\n\r\n3\r\none", b"Conte"]
)
def test_one_that_breaks_off_is_no_answer(given: ExitStack, rest: bytes) -> None:
    _, connections = serving(given, [b"HTTP/1.1 200 OK\r\n" + rest, LEAVE])
    with pytest.raises(ConnectionError):
        said(connections)


def test_who_stops_reading_ends_the_connection(given: ExitStack) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server, connections = serving(given, [head + b"3\r\none\r\n"], [answered(b"two")])
    with closing(connections.post("/api", b"{}", {})) as pieces:
        assert next(pieces) == b"one"
    assert server.left.wait(5)
    assert said(connections) == b"two"


def test_a_refusal_has_its_status_and_words(given: ExitStack) -> None:
    _, connections = serving(given, [answered(b"no such model", "404 Not Found")], [answered(b"two")])
    with pytest.raises(ServerError, match="404: no such model") as refused:
        said(connections)
    assert refused.value.status_code == 404
    assert said(connections) == b"two"


def test_silence_is_waited_for_no_longer_than_told(given: ExitStack) -> None:
    server, connections = serving(given, [], timeout=0.05)
    with pytest.raises(TimeoutError):
        said(connections)
    assert server.left.wait(5)


@pytest.mark.parametrize("more", [answered(b"two"), b"\r\nnonsense", answered(b"", "408 Request Timeout")])
def test_a_connection_on_which_more_was_said_is_not_used_again(given: ExitStack, more: bytes) -> None:
    server, connections = serving(given, [answered(b"one"), PAUSE, more], [answered(b"three")])
    assert said(connections) == b"one"
    sleep(3 * PAUSE_SECONDS)
    assert said(connections) == b"three"
    assert server.connections == 2


def test_more_than_one_answer_is_a_fault_and_ends_the_connection(given: ExitStack) -> None:
    server, connections = serving(given, [answered(b"one") + answered(b"two")], [answered(b"three")])
    with pytest.raises(ConnectionError):
        said(connections)
    assert server.left.wait(5)
    assert said(connections) == b"three"


@pytest.mark.parametrize("pause", [b"", PAUSE])
def test_an_announcement_is_not_the_answer(given: ExitStack, pause: bytes) -> None:
    announced = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    server, connections = serving(given, [announced, *([pause] if pause else []), answered(b"one")], [answered(b"two")])
    assert said(connections) == b"one"
    assert said(connections) == b"two"
    assert server.connections == 1


@pytest.mark.parametrize("spoken", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"])
def test_what_is_not_http(given: ExitStack, spoken: bytes) -> None:
    _, connections = serving(given, [spoken, LEAVE])
    with pytest.raises(ConnectionError):
        said(connections)


@pytest.mark.parametrize("value", ["k\n", "k\r\nX: y"])
def test_a_header_cannot_break_the_request_apart(value: str) -> None:
    with pytest.raises(ValueError, match="header"):
        next(Connections("http://127.0.0.1:9", 5).post("/api", b"", {"Authorization": value}))


def test_no_answer_at_all(given: ExitStack) -> None:
    _, connections = serving(given, [LEAVE])
    with pytest.raises(ConnectionError):
        said(connections)


def test_nobody_listens() -> None:
    with create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(ConnectionError):
        said(Connections(url, 5))


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://localhost", "http://"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="not the address"):
        Connections(url, 5)

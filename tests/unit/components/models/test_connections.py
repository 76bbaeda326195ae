"""HTTP to model servers, against a server whose every byte is chosen here."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from socket import create_server, socket
from threading import Event, Thread

import pytest

from components.models.connections import Connections, ServerError

LEAVE = b""
"""In an answer: close the connection here."""


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
            with connection:
                self._serve(connection)

    def _serve(self, connection: socket) -> None:
        while self.answers and (request := connection.recv(65_536)):
            self.requests.append(request)
            for part in self.answers.pop(0):
                if part == LEAVE:
                    return
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
    return server, given.enter_context(closing(Connections(server.url, timeout)))


def said(connections: Connections) -> bytes:
    return b"".join(connections.post("/api", b"{}"))


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


@pytest.mark.parametrize("header", [b"Content-Length: 9", b"Transfer-Encoding: chunked"])
def test_one_that_breaks_off_is_no_answer(given: ExitStack, header: bytes) -> None:
    _, connections = serving(given, [b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n", b"3\r\none\r\n", LEAVE])
    with pytest.raises(ConnectionError):
        said(connections)


def test_who_stops_reading_ends_the_connection(given: ExitStack) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server, connections = serving(given, [head + b"3\r\none\r\n"], [answered(b"two")])
    with closing(connections.post("/api", b"{}")) as pieces:
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
    server, connections = serving(given, [], [answered(b"two")], timeout=0.05)
    with pytest.raises(TimeoutError):
        said(connections)
    assert server.left.wait(5)


def test_silence_on_a_connection_used_before_is_not_asked_again(given: ExitStack) -> None:
    server, connections = serving(given, [answered(b"one")], [], [answered(b"three")], timeout=0.05)
    assert said(connections) == b"one"
    with pytest.raises(TimeoutError):
        said(connections)
    assert len(server.requests) == 2


def test_no_answer_at_all(given: ExitStack) -> None:
    _, connections = serving(given, [LEAVE])
    with pytest.raises(ConnectionError):
        said(connections)


def test_nobody_listens() -> None:
    with create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(ConnectionRefusedError):
        said(Connections(url, 5))


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://localhost", "http://"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="not the address"):
        Connections(url, 5)

"""Connections that send much, little or no data before any token."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

import app
from pipelines import connections
from pipelines.connections import HEAD_BYTES, BoundedConnection
from settings import Settings
from tests.attack.attacking import PATIENCE_SECONDS
from tests.service.serving import Server

HEAD = b"POST / HTTP/1.1\r\nHost: opora\r\n"


def test_a_head_without_end_is_refused(server: Server, answered: Callable[[], bool]) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as line:
        try:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: opora\r\nX-Long: " + b"x" * 2 * HEAD_BYTES)
            line.sendall(b"\r\n\r\n")
            reply = line.recv(65_536)
        except ConnectionError:
            reply = b""
    assert not reply.startswith(b"HTTP/1.1 200")
    assert answered()


def test_a_long_head_within_bounds_is_read(server: Server) -> None:
    assert httpx.get(f"{server.url}/healthz", headers={"X-Long": "x" * (HEAD_BYTES // 2)}).is_success


@pytest.mark.parametrize(
    "head",
    [
        "GET /seen?" + "%ff&" * 1_000,
        "GET /seen?" + "x" * 9_000,
        "GET /seen HTTP/1.1\r\nCookie: " + "a;" * 1_000,
    ],
    ids=["query", "long query", "cookies"],
)
def test_a_head_of_many_fields_is_refused(server: Server, head: str) -> None:
    head += "" if "HTTP" in head else " HTTP/1.1"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as line:
        line.sendall(f"{head}\r\nHost: opora\r\nConnection: close\r\n\r\n".encode())
        assert line.recv(65_536).startswith(b"HTTP/1.1 422")


class Line(asyncio.Transport):
    """The server's end of a connection, without a network."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 1), "sockname": ("127.0.0.1", 2)})
        self.aborted = asyncio.Event()
        self.written = bytearray()
        self.answered = asyncio.Event()

    def abort(self) -> None:
        self.aborted.set()

    def close(self) -> None:
        self.aborted.set()

    def is_closing(self) -> bool:
        return self.aborted.is_set()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.answered.set()

    def pause_reading(self) -> None:
        """Ignore the call: the test reads explicitly."""

    def resume_reading(self) -> None:
        """Ignore the call."""


class Listener:
    """Connections to an application that echoes received data after a signal."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.reads = True
        self.state = ServerState()
        self.config = uvicorn.Config(self._application, interface="asgi3", log_config=None, lifespan="off", ws="none")
        self.config.load()
        self.connections: list[BoundedConnection] = []

    def connect(self, address: str = "203.0.113.1") -> tuple[BoundedConnection, Line]:
        line, connection = Line(address), BoundedConnection(self.config, self.state, {})
        connection.connection_made(line)
        self.connections.append(connection)
        return connection, line

    def close(self) -> None:
        for connection in self.connections:
            connection.connection_lost(None)

    async def _application(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body() if self.reads else b""
        await self.go.wait()
        await Response(body)(scope, receive, send)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    opened = Listener()
    yield opened
    opened.close()
    assert not BoundedConnection._open


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(connections, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.05)


async def happens(event: asyncio.Event) -> bool:
    return await asyncio.wait_for(event.wait(), PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "sent", [b"", b"POST / HT", HEAD, HEAD + b"Content-Length: 10\r\n\r\n5"], ids=["nothing", "line", "head", "body"]
)
@pytest.mark.usefixtures("hurried")
async def test_a_request_that_does_not_arrive_is_not_waited_for(listener: Listener, sent: bytes) -> None:
    connection, line = listener.connect()
    if sent:
        connection.data_received(sent)
    assert await happens(line.aborted)


@pytest.mark.usefixtures("hurried")
async def test_a_fast_beginning_buys_no_long_silence(listener: Listener) -> None:
    """4.99 of 5 MB sent at once allowed a silence of nearly three hours, in which they were held."""
    connection, line = listener.connect()
    connection.data_received(HEAD + b"Content-Length: 60000\r\n\r\n" + bytes(50_000))
    assert await happens(line.aborted)


@pytest.mark.usefixtures("hurried")
async def test_a_reply_that_is_not_taken_is_given_up(listener: Listener) -> None:
    connection, line = listener.connect()
    connection.data_received(HEAD + b"Content-Length: 5\r\n\r\n12345")
    assert await happens(line.answered)
    connection.pause_writing()
    assert await happens(line.aborted)


@pytest.mark.usefixtures("hurried")
async def test_an_answer_that_takes_long_is_waited_for(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    listener.go.clear()
    connection, line = listener.connect()
    connection.data_received(HEAD + b"Content-Length: 5\r\n\r\n12345")
    connection._due -= 1_000
    looked, usual = asyncio.Event(), BoundedConnection._is_late

    def is_late(self: BoundedConnection) -> bool:
        looked.set()
        return usual(self)

    monkeypatch.setattr(BoundedConnection, "_is_late", is_late)
    assert await happens(looked)
    assert not line.aborted.is_set()
    listener.go.set()
    assert await happens(line.answered)
    assert line.written.startswith(b"HTTP/1.1 200")


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"a:\r\n" * 101 + b"\r\n",
        HEAD + b"a:" + b"x" * HEAD_BYTES + b"\r\n\r\n",
        CHUNKED + b"0\r\n" + b"a:\r\n" * 102 + b"\r\n",
        CHUNKED + b"1\r\na\r\n" * 1_000 + b"0\r\n\r\n",
    ],
    ids=["headers", "bytes", "trailer", "chunks"],
)
async def test_many_headers_or_chunks_are_refused(listener: Listener, sent: bytes) -> None:
    connection, line = listener.connect()
    connection.data_received(sent)
    assert await happens(line.answered)
    assert line.written.startswith(b"HTTP/1.1 400")


async def test_many_chunks_after_an_answer_only_close_the_connection(listener: Listener) -> None:
    """Each wrote a fatal error to the log."""
    listener.reads = False
    connection, line = listener.connect()
    connection.data_received(CHUNKED)
    assert await happens(line.answered)
    connection.data_received(b"1\r\na\r\n" * 1_000)
    assert await happens(line.aborted)
    assert line.written.count(b"HTTP/1.1") == 1


async def test_usual_headers_and_chunks_are_read(listener: Listener) -> None:
    connection, line = listener.connect()
    for _ in range(3):
        head = CHUNKED.replace(b"\r\n\r\n", b"\r\n" + b"a:\r\n" * 90 + b"\r\n")
        connection.data_received(head + b"1\r\na\r\n" * 100 + b"200\r\n" + b"x" * 512 + b"\r\n0\r\n\r\n")
        assert await happens(line.answered)
        assert line.written.startswith(b"HTTP/1.1 200")
        line.written.clear()
        line.answered.clear()


async def test_no_address_has_all_connections(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "per_address", 3)
    lines = [listener.connect() for _ in range(4)]
    assert [line.aborted.is_set() for _, line in lines] == [False, False, False, True]
    lines[0][0].data_received(HEAD + b"Content-Length: 1\r\n\r\n1")
    assert await happens(lines[0][1].answered)
    lines[1][0].connection_lost(None)
    listener.connections.remove(lines[1][0])
    lines[3][0].connection_lost(None)
    listener.connections.remove(lines[3][0])
    assert not listener.connect()[1].aborted.is_set()


async def test_new_connections_of_an_address_are_limited(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "per_address", 1)
    monkeypatch.setattr(BoundedConnection, "_paid_until", {})
    monkeypatch.setattr(connections, "NEW_AT_ONCE", 3)

    def is_refused(address: str) -> bool:
        connection, line = listener.connect(address)
        aborted = line.aborted.is_set()
        listener.connections.remove(connection)
        connection.connection_lost(None)
        return aborted

    assert [is_refused("203.0.113.1") for _ in range(5)] == [False, False, False, True, True]
    assert not is_refused("203.0.113.2")


async def test_a_few_networks_leave_connections_to_others(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "at_most", 200)

    def accepted(*addresses: str) -> int:
        refused = 0
        for address in addresses:
            connection, line = listener.connect(address)
            if line.aborted.is_set():
                connection.connection_lost(None)
                listener.connections.remove(connection)
                refused += 1
        return len(addresses) - refused

    hostile = [f"198.51.100.{number}" for number in range(250)]
    networks = (
        hostile,
        [one.replace("100", "101") for one in hostile],
        [f"2001:db8:5:{one:x}::1" for one in range(250)],
    )
    most, *fewer = [accepted(*addresses) for addresses in networks]
    assert (most, fewer) == (100, [50, 25])
    for address in ("192.0.2.1", "2001:db8:6::1", "::ffff:203.0.113.5", "::ffff:203.0.114.5"):
        assert accepted(address) == 1


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Authorization: Bearer first", "Authorization: Bearer second"),
    ],
)
@pytest.mark.parametrize("path", ["/ask/run", "/desk/sign-in"])
def test_a_request_that_can_be_read_in_two_ways_is_refused(server: Server, path: str, headers: tuple[str, ...]) -> None:
    """A proxy and the service may disagree about its end or its caller."""
    head = "\r\n".join((f"POST {path} HTTP/1.1", "Host: opora", *headers))
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as line:
        line.sendall(f"{head}\r\n\r\n0\r\n\r\n".encode())
        reply = b"".join(iter(lambda: line.recv(65_536), b""))
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_ends_its_connection(server: Server, path: str) -> None:
    """Probes never wait, so that only the number of connections limits them."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: opora\r\n\r\n".encode() * 3)
        replies = b"".join(iter(lambda: line.recv(65_536), b""))
    assert replies.count(b"HTTP/1.1 ") == 1


def test_many_connections_are_accepted_in_one_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind 2,400 connections made at once, those of other clients waited for up to 20 s."""
    turn, turns, lines = 0, list[int](), list[socket.socket]()

    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        while scope["type"] == "lifespan" and (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})

    def note_turn(_: BoundedConnection, transport: asyncio.Transport) -> None:
        turns.append(turn)
        transport.abort()

    def begin() -> None:
        at = server.servers[0].sockets[0].getsockname()
        lines.extend(socket.create_connection(at, PATIENCE_SECONDS) for _ in range(app.ACCEPTED_AT_ONCE))
        take_turn()

    def take_turn() -> None:
        nonlocal turn
        turn += 1
        server.should_exit = len(turns) == len(lines)
        asyncio.get_running_loop().call_soon(take_turn)

    monkeypatch.setattr(BoundedConnection, "connection_made", note_turn)
    monkeypatch.setattr(BoundedConnection, "connection_lost", lambda *_: None)
    config = app.server_config(silent, Settings(), 0)
    config.port = 0
    server = app.Server(config)
    server.on_started = begin
    server.run()
    for line in lines:
        line.close()
    assert len(turns) == app.ACCEPTED_AT_ONCE
    assert turns[-1] - turns[0] < 10

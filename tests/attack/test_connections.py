"""Connections that send much, little or nothing, before any token."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from pipelines import connections
from pipelines.connections import HEAD_BYTES, BoundedConnection
from tests.attack.attacking import PATIENCE_SECONDS
from tests.service.serving import Server

HEAD = b"POST / HTTP/1.1\r\nHost: opora\r\n"


def test_a_head_without_end_is_refused(server: Server, answered: Callable[[], bool]) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: opora\r\nX-Long: " + b"x" * 2 * HEAD_BYTES)
        try:
            line.sendall(b"\r\n\r\n")
            reply = line.recv(65_536)
        except ConnectionError:
            reply = b""
    assert not reply.startswith(b"HTTP/1.1 200")
    assert answered()


def test_a_long_head_within_bounds_is_read(server: Server) -> None:
    assert httpx.get(f"{server.url}/healthz", headers={"X-Long": "x" * (HEAD_BYTES // 2)}).is_success


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await Response(b"x" * int(body or b"2"))(scope, receive, send)


async def all_closed() -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while BoundedConnection._open:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """The port of a server whose connections are bounded."""
    config = uvicorn.Config(_application, http=BoundedConnection, log_config=None, lifespan="off", ws="none")
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BoundedConnection(config, state, {}), "127.0.0.1", 0)
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for connection in list(state.connections):
                connection.transport.abort()
            await all_closed()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.05)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def closed(reader: asyncio.StreamReader) -> bool:
    """Whether the far end closes the connection."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await reader.read(65_536):
                pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "sent", [b"", b"POST / HT", HEAD, HEAD + b"Content-Length: 10\r\n\r\n5"], ids=["nothing", "line", "head", "body"]
)
@pytest.mark.usefixtures("hurried")
async def test_a_request_that_does_not_arrive_is_not_waited_for(sent: bytes) -> None:
    async with listening() as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await closed(reader)


@pytest.mark.usefixtures("hurried")
async def test_a_reply_that_is_not_taken_is_given_up() -> None:
    async with listening() as port:
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            await asyncio.to_thread(line.connect, ("127.0.0.1", port))
            line.sendall(HEAD + b"Content-Length: 8\r\n\r\n50000000")
            await all_closed()


@pytest.mark.usefixtures("hurried")
async def test_an_answer_that_takes_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    go = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await go.wait()
        await Response(b"late")(scope, receive, send)

    monkeypatch.setattr("tests.attack.test_connections._application", slow)
    looked = asyncio.Event()
    usual, times = BoundedConnection._is_late, iter(range(20))

    def is_late(self: BoundedConnection) -> bool:
        if next(times, None) is None:
            looked.set()
        return usual(self)

    monkeypatch.setattr(BoundedConnection, "_is_late", is_late)
    async with listening() as port, connected(port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: opora\r\n\r\n")
        await asyncio.wait_for(looked.wait(), PATIENCE_SECONDS)
        go.set()
        assert b"200" in await asyncio.wait_for(reader.readline(), PATIENCE_SECONDS)


async def test_no_address_has_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "per_address", 3)
    async with listening() as port, AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(connected(port)) for _ in range(4)]
        assert await closed(lines[3][0])
        lines[0][1].write(b"GET / HTTP/1.1\r\nHost: opora\r\n\r\n")
        assert b"200" in await asyncio.wait_for(lines[0][0].readline(), PATIENCE_SECONDS)

"""HTTP for the simulator, served by Uvicorn: a reply can break anywhere, and the work for a client ends with it."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import uvicorn

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
_BACKLOG = 256
_KEEP_ALIVE_SECONDS = 600


class Reply:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send

    async def json(self, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content, ensure_ascii=False).encode()
        await self.content(body, "application/json; charset=utf-8", status, headers)

    async def content(
        self, body: bytes, content_type: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        await self._start(status, {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, content_type: str) -> None:
        await self._start(200, {"Content-Type": content_type})

    async def piece(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def abort(self) -> None:
        """Reset the connection, whatever was sent before."""
        # ASGI has no such message; the receiver is a method of Uvicorn's cycle of request and response.
        self._receive.__self__.transport.abort()  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})


Handler: TypeAlias = Callable[[str, str, bytes, Reply], Awaitable[None]]


def server(handle: Handler) -> uvicorn.Server:
    async def application(scope: Message, receive: Receive, send: Send) -> None:
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        work = asyncio.ensure_future(handle(scope["method"], scope["path"], body, Reply(receive, send)))
        left = asyncio.ensure_future(receive())
        await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if not work.done():
            work.cancel()
        await asyncio.gather(work, left, return_exceptions=True)
        if not work.cancelled():
            work.result()

    config = uvicorn.Config(
        application,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=0,
    )
    return uvicorn.Server(config)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free port. Clients wait in its queue until a server takes over."""
    return socket.create_server((host, port), backlog=_BACKLOG)

"""HTTP/1.1 on a bare asyncio protocol: a hundred streams cost almost nothing, and a reply can break anywhere."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

log = logging.getLogger("opora.simulator")

_HEAD_END = b"\r\n\r\n"
_LONGEST = 50_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """A complete request."""

    method: str
    path: str
    body: bytes


class Reply:
    """Writes one response to a connection, at once or piece by piece."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def json(self, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send `content` and end the response."""
        self.content(
            json.dumps(content, ensure_ascii=False).encode(), "application/json; charset=utf-8", status, headers
        )

    def content(
        self, body: bytes, content_type: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a body and end the response."""
        more = {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}
        self._transport.write(_head(status, more) + body)

    def begin(self, content_type: str) -> None:
        """Begin a response of unknown length."""
        self._transport.write(_head(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"}))

    def piece(self, data: bytes) -> None:
        """Send a chunk of the response."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """End the response."""
        self._transport.write(b"0\r\n\r\n")

    def abort(self) -> None:
        """Reset the connection, whatever was sent before."""
        self._transport.abort()


Handler = Callable[[Request, Reply], Awaitable[None]]


class Connection(asyncio.Protocol):
    """A client connection. Requests are handled in order; if the client disconnects, the running one is cancelled.

    :param connected: the set of open connections.
    """

    def __init__(self, handle: Handler, connected: set[asyncio.Transport]) -> None:
        self._handle = handle
        self._connected = connected
        self._buffer = bytearray()
        self._work: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._connected.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Cancel the work for a disconnected client."""
        if self._transport is not None:
            self._connected.discard(self._transport)
        self._transport = None
        if self._work is not None:
            self._work.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect data until a request is complete."""
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self._work is not None or self._transport is None:
            return
        try:
            request = self._next_request()
        except ValueError:
            Reply(self._transport).json({"error": "malformed request"}, 400)
            self._transport.close()
            return
        if request is not None:
            self._work = asyncio.ensure_future(self._handle(request, Reply(self._transport)))
            self._work.add_done_callback(self._done)

    def _done(self, work: "asyncio.Task[None]") -> None:
        self._work = None
        error = None if work.cancelled() else work.exception()
        if error is not None:
            log.error("a request failed", exc_info=error)
            if self._transport is not None:
                self._transport.abort()
        self._next()

    def _next_request(self) -> Request | None:
        """Take the first request from the buffer; None if it is incomplete."""
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            if len(self._buffer) > _LONGEST:
                raise ValueError("endless head")
            return None
        first, *header_lines = self._buffer[:end].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = dict(line.lower().split(":", 1) for line in header_lines)
        length = int(headers.get("content-length", "0"))
        if "transfer-encoding" in headers or not 0 <= length <= _LONGEST:
            raise ValueError("a body of unknown or too great length")
        start = end + len(_HEAD_END)
        if len(self._buffer) < start + length:
            return None
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        return Request(method, target.partition("?")[0], body)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

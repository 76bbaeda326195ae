"""Asking a model server over HTTP, with as little as it takes between the socket and the text.

A server sends each token in a piece of its own. Through httpx and h11 a piece costs 0.15 ms of processor while many
come, and 0.5 ms when each is waited for; here one reading takes all that has come, and the parser is llhttp.
"""

from collections.abc import Generator
from http import HTTPStatus
from socket import create_connection, socket
from ssl import create_default_context
from threading import Lock
from time import sleep
from urllib.parse import urlsplit
from weakref import finalize

from httptools import HttpResponseParser

_READ_BYTES = 65_536
_PORTS = {"http": 80, "https": 443}


class ServerError(Exception):
    """A model server's refusal. `status_code` is that of HTTP."""

    def __init__(self, status_code: int, told: str) -> None:
        super().__init__(f"{status_code}: {told}")
        self.status_code = status_code


class Connections:
    """Connections to one server, kept open between requests. Thread-safe. Redirects and proxies are not followed.

    :param url: of the server; its path comes before that of each request. Raises `ValueError` for another scheme than
        `http` and `https`.
    :param timeout: seconds to wait for a connection, and for each piece of an answer.
    """

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f"not the address of a server: {url}")
        self._address = parts.hostname, parts.port or _PORTS[parts.scheme]
        self._host = parts.netloc.rpartition("@")[2]
        self._path = parts.path.rstrip("/")
        self._tls = create_default_context() if parts.scheme == "https" else None
        self._timeout = timeout
        self._idle: list[socket] = []
        self._lock = Lock()
        finalize(self, _close_all, self._idle)

    def post(self, path: str, body: bytes, headers: str = "", *, rest: float = 0.0) -> Generator[bytes, None, None]:
        """The body of the answer, piece by piece. Whoever stops reading early ends the connection.

        :param headers: further ones, each with its line end.
        :param rest: seconds between two readings, in which what comes gathers.
        :raises ServerError: the server refused.
        :raises OSError: it cannot be reached, or says nothing for too long.
        """
        head = f"POST {self._path}{path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n"
        request = f"{head}Content-Type: application/json\r\n{headers}\r\n".encode("ascii") + body
        connection, read = self._begun(request)
        answer = _Answer()
        try:
            while read:
                answer.parser.feed_data(read)
                if answer.body and answer.accepted:
                    yield answer.taken()
                if answer.complete:
                    break
                sleep(rest)
                read = connection.recv(_READ_BYTES)
            if answer.broken:
                raise ConnectionError("the server left before its answer was whole")
            if not answer.accepted:
                raise ServerError(answer.parser.get_status_code(), answer.taken().decode("utf-8", "replace"))
        finally:
            if answer.reusable:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close what is idle. Asking stays possible."""
        with self._lock:
            _close_all(self._idle)

    def _begun(self, request: bytes) -> tuple[socket, bytes]:
        """A connection on which the request was sent, and the first that came back; nothing where the server left."""
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                if read := _asked(kept, request):
                    return kept, read
            except TimeoutError:
                kept.close()
                raise
            except OSError:
                pass
            # The server had closed it meanwhile, as it may.
            kept.close()
        connection = create_connection(self._address, self._timeout)
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=self._address[0])
            return connection, _asked(connection, request)
        except BaseException:
            connection.close()
            raise


class _Answer:
    """What the parser has found so far."""

    def __init__(self) -> None:
        self.parser = HttpResponseParser(self)
        self.body = bytearray()
        self.complete = False
        self.reusable = False
        self._measured = False

    @property
    def accepted(self) -> bool:
        return self.parser.get_status_code() == HTTPStatus.OK

    @property
    def broken(self) -> bool:
        """Once nothing more comes: whether some is missing. Where nothing tells the length, the end is anywhere."""
        return not self.complete and (self._measured or not self.parser.get_status_code())

    def taken(self) -> bytes:
        """What was not taken before."""
        taken = bytes(self.body)
        self.body.clear()
        return taken

    def on_header(self, name: bytes, _value: bytes) -> None:
        """For the parser."""
        self._measured |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_body(self, body: bytes) -> None:
        """For the parser."""
        self.body += body

    def on_message_complete(self) -> None:
        """For the parser. Only now does it know whether the connection stays open."""
        self.complete, self.reusable = True, self.parser.should_keep_alive()


def _asked(connection: socket, request: bytes) -> bytes:
    connection.sendall(request)
    return connection.recv(_READ_BYTES)


def _close_all(connections: list[socket]) -> None:
    while connections:
        connections.pop().close()

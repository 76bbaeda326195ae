"""Asking a model server over HTTP, with as little as it takes between the socket and the text.

A server sends each token in a piece of its own. Through httpx and h11 a piece costs 0.15 ms of processor while many
come, and 0.5 ms when each is waited for; here one reading takes all that has come, and the parser is llhttp.
"""

from collections.abc import Generator, Mapping
from http import HTTPStatus
from select import POLLIN, poll
from socket import create_connection, socket
from ssl import create_default_context
from threading import Lock
from time import sleep
from urllib.parse import urlsplit
from weakref import finalize

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_READ_BYTES = 65_536
_MOST_IDLE = 32
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

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str], *, pause: float = 0.0
    ) -> Generator[bytes, None, None]:
        """The body of the answer, piece by piece. Whoever closes the generator early ends the connection.

        :param headers: besides those that HTTP wants.
        :param pause: seconds between two readings, in which what comes gathers.
        :raises ServerError: the server refused.
        :raises TimeoutError: it says nothing for too long.
        :raises ConnectionError: it cannot be reached, breaks off, or does not speak HTTP.
        """
        request = self._head(path, {**headers, "Content-Length": str(len(body))}) + body
        connection = self._waiting() or self._connected()
        answer, reusable = _Answer(), False
        try:
            connection.sendall(request)
            while read := connection.recv(_READ_BYTES):
                answer.feed(read)
                if answer.body and answer.accepted:
                    yield answer.taken()
                if answer.complete:
                    break
                sleep(pause)
            if answer.broken:
                raise ConnectionError("the server left before its answer was whole")
            reusable = answer.reusable
            if not answer.accepted:
                raise ServerError(answer.status, answer.taken().decode("utf-8", "replace"))
        finally:
            if not reusable or not self._kept(connection):
                connection.close()

    def close(self) -> None:
        """Close what is idle. Asking stays possible."""
        with self._lock:
            _close_all(self._idle)

    def _head(self, path: str, headers: Mapping[str, str]) -> bytes:
        lines = [f"POST {self._path}{path} HTTP/1.1", f"Host: {self._host}", *map(": ".join, headers.items())]
        if not all(line.isprintable() for line in lines):
            raise ValueError("a header would break the request apart")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")

    def _connected(self) -> socket:
        try:
            connection = create_connection(self._address, self._timeout)
            if self._tls is None:
                return connection
            return self._tls.wrap_socket(connection, server_hostname=self._address[0])
        except TimeoutError:
            raise
        except OSError as fault:
            # No such name, no way there, no certificate: their own classes say less than that.
            raise ConnectionError("the server cannot be reached") from fault

    def _waiting(self) -> socket | None:
        """An idle connection, if there is one on which the server has said nothing more, such as that it leaves."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            looked = poll()
            looked.register(connection, POLLIN)
            if not looked.poll(0):
                return connection
            connection.close()

    def _kept(self, connection: socket) -> bool:
        with self._lock:
            if len(self._idle) == _MOST_IDLE:
                return False
            self._idle.append(connection)
            return True


class _Answer:
    """What the parser has found so far. Answers of status 1xx only announce the one that counts."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.status = 0
        self.complete = False
        self.reusable = False
        self._measured = False
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse. Raises `ConnectionError` on what is no answer, or more than one."""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as fault:
            raise ConnectionError("the server does not answer in HTTP") from fault

    @property
    def accepted(self) -> bool:
        return self.status == HTTPStatus.OK

    @property
    def broken(self) -> bool:
        """Once nothing more comes: whether some is missing. Where nothing tells the length, the end is anywhere."""
        return not self.complete and (self._measured or not self.status)

    def taken(self) -> bytes:
        """What was not taken before."""
        taken = bytes(self.body)
        self.body.clear()
        return taken

    def on_message_begin(self) -> None:
        """For the parser, as all that follows."""
        if self.complete:
            raise ConnectionError("the server says more than it was asked")
        self._measured = False

    def on_header(self, name: bytes, value: bytes) -> None:
        known = name.lower()
        chunked = known == b"transfer-encoding" and b"chunked" in value.lower()
        self._measured |= chunked or known == b"content-length"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self.status = status if status >= HTTPStatus.OK else 0

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        # Only here does the parser know whether the connection stays open.
        self.complete, self.reusable = bool(self.status), self._parser.should_keep_alive()


def _close_all(connections: list[socket]) -> None:
    while connections:
        connections.pop().close()

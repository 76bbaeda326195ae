"""Proxy between a browser and the service that simulates a bad network: it cuts streams and buffers responses."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import repeat
from threading import Lock, Thread

_EVENT = re.compile(rb"^event: ([a-z-]+)$", re.MULTILINE)
_HEAD_END = b"\r\n\r\n"
_EVENT_END = b"\n\n"
_CHUNK = 65_536


class Proxy:
    """Passes requests on to a port of this machine, one a connection. Its own port stays when that changes."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.limits: Iterator[int | None] = repeat(None)
        """Number of events after which the next streams are cut; None: they are not."""
        self.buffered_bytes = 0
        """Size of the buffer: response data is held until it is full, or the response ends."""
        self.events: list[str] = []
        """The events that have passed."""
        self.on_event: Callable[[str], None] = lambda _: None
        self.most_streams = 0
        self._streams = 0
        self._lock = Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        accepting = Thread(target=self._accept, daemon=True)
        accepting.start()
        try:
            yield self
        finally:
            # A thread that waits for a connection does not notice that its socket is closed.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            accepting.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            request = _request(client)
            if not request:
                return
            with closing(socket.create_connection(("127.0.0.1", self.port), timeout=60)) as service:
                service.sendall(request)
                if b"/events?" in request.split(b"\r\n", 1)[0] and not self.buffered_bytes:
                    self._pass_stream(service, client)
                else:
                    self._pass(service, client)

    def _pass(self, service: socket.socket, client: socket.socket) -> None:
        held = b""
        while chunk := service.recv(_CHUNK):
            held += chunk
            if len(held) >= self.buffered_bytes:
                client.sendall(held)
                held = b""
        client.sendall(held)

    def _pass_stream(self, service: socket.socket, client: socket.socket) -> None:
        with self._lock:
            self._streams += 1
            self.most_streams = max(self.most_streams, self._streams)
            limit = next(self.limits, None)
        # The browser is watched, too: a stream that it has left is over.
        Thread(target=_end_with, args=(client, service), daemon=True).start()
        try:
            self._pass_events(service, client, limit)
        finally:
            with self._lock:
                self._streams -= 1
            # A socket that another thread reads is not closed by `close` alone.
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _pass_events(self, service: socket.socket, client: socket.socket, limit: int | None) -> None:
        service.settimeout(None)
        passed, held = 0, b""
        while chunk := service.recv(_CHUNK):
            *whole, held = (held + chunk).split(_EVENT_END)
            for event in whole:
                client.sendall(event + _EVENT_END)
                name = _EVENT.search(event)
                if name is None:
                    continue
                self.events.append(name[1].decode())
                self.on_event(self.events[-1])
                passed += 1
                if passed == limit:
                    return
        client.sendall(held)


def _request(client: socket.socket) -> bytes:
    """Read one request that announces the end of its connection."""
    data = b""
    while _HEAD_END not in data:
        if not (chunk := client.recv(_CHUNK)):
            return b""
        data += chunk
    head, _, body = data.partition(_HEAD_END)
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    while length and len(body) < int(length[1]):
        if not (chunk := client.recv(_CHUNK)):
            return b""
        body += chunk
    head = re.sub(rb"(?im)^connection:.*\r\n", b"", head + b"\r\n").rstrip()
    return head + b"\r\nConnection: close" + _HEAD_END + body


def _end_with(client: socket.socket, service: socket.socket) -> None:
    with suppress(OSError):
        while client.recv(_CHUNK):
            pass
        service.shutdown(socket.SHUT_RDWR)

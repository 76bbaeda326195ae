"""A gateway that can be blocked, between a service and its database, Redis or Qdrant."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Literal, TypeAlias

from sqlalchemy import make_url

Mode: TypeAlias = Literal["passes", "refuses", "hangs", "slow", "resets", "garbles"]

_CHUNK = 65_536
_SLOW_SECONDS = 0.02
_GARBAGE = b"\x00\xffgarbage\r\n\r\n"


class Gateway:
    """Forwards connections from its port to a socket of the machine.

    :param target: a port, or the path of a Unix socket; None: no server.
    :ivar mode: the current behaviour. `hangs` accepts and stays silent; `slow` takes 20 ms for each piece; `resets`
        ends every connection, old and new, at its next piece; `garbles` answers nonsense.
    """

    def __init__(self, target: int | str | None = None) -> None:
        self.mode: Mode = "passes"
        self._target = target
        self._lines: set[socket.socket] = set()
        self._lock = Lock()
        self._closing = Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]

    @classmethod
    @contextmanager
    def to(cls, url: str) -> Iterator["Gateway"]:
        """Create a gateway to the server of a URL, such as `redis://127.0.0.1:6379` or `unix:///run/redis.sock`."""
        parsed = make_url(url)
        folder = parsed.query.get("host")
        target: int | str | None = parsed.port
        if isinstance(folder, str):
            target = f"{folder}/.s.PGSQL.{parsed.port or 5432}"
        elif parsed.drivername == "unix":
            target = f"/{parsed.database}"
        with cls(target).running() as gateway:
            yield gateway

    @contextmanager
    def running(self) -> Iterator["Gateway"]:
        """Accept connections until the block ends."""
        accepting = Thread(target=self._accept, name="gateway", daemon=True)
        accepting.start()
        try:
            yield self
        finally:
            self._closing.set()
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self.cut()
            accepting.join()

    def cut(self) -> None:
        """End every connection."""
        with self._lock:
            for line in self._lines:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), suppress(OSError), self._registered(client):
            if self.mode == "refuses":
                return
            if self._target is None:
                self._answer(client)
                return
            with closing(self._connected()) as server, self._registered(server):
                back = Thread(target=self._pass, args=(server, client), kwargs={"answers": True}, daemon=True)
                back.start()
                self._pass(client, server)
                back.join()

    @contextmanager
    def _registered(self, line: socket.socket) -> Iterator[None]:
        with self._lock:
            self._lines.add(line)
        try:
            yield
        finally:
            with self._lock:
                self._lines.discard(line)

    def _connected(self) -> socket.socket:
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(self._target))
        return line

    def _pass(self, source: socket.socket, sink: socket.socket, *, answers: bool = False) -> None:
        with suppress(OSError):
            while piece := source.recv(_CHUNK):
                if not self._may_pass(source):
                    break
                if self.mode == "garbles":
                    # Drop the request.
                    (sink if answers else source).sendall(_GARBAGE)
                else:
                    sink.sendall(piece)
        for line in (source, sink):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def _may_pass(self, line: socket.socket) -> bool:
        """Whether a piece may pass, after its delay."""
        while self.mode == "hangs" and not self._closing.is_set():
            # Until the mode changes, or the client gives up.
            if _is_closed(line):
                return False
            Event().wait(_SLOW_SECONDS)
        if self.mode == "slow":
            Event().wait(_SLOW_SECONDS)
        return self.mode not in {"refuses", "resets"} and not self._closing.is_set()

    def _answer(self, client: socket.socket) -> None:
        """Answer like an unknown server."""
        while client.recv(_CHUNK) and self._may_pass(client):
            client.sendall(_GARBAGE)


def _is_closed(line: socket.socket) -> bool:
    try:
        return line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True

"""The embedded index of a running service, for commands on the same data folder.

The engine opens a folder in one process alone. So the service that has it listens on 127.0.0.1, notes its port, and a
command reaches the collections of its tenant through it (`attach` in `tenants.index.access`).

The threat: another user of the machine reads or writes chunks, or has the service unpickle an object of theirs. Before
anything is unpickled, both sides prove by HMAC that they know a key from the data folder. A process that can read that
folder can read the index in it anyway.
"""

import copyreg
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from pathlib import Path
from secrets import token_bytes
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from types import MappingProxyType
from typing import Any, cast

from tenants.accounts.registry import Placement
from tenants.core import context
from tenants.core.batches import batches
from tenants.core.context import COMMAND_LINE, Tenant, acting_as
from tenants.core.errors import InternalFault, OporaError, TryAgain, trail
from tenants.core.json import Json
from tenants.core.points import Conditions, Hit
from tenants.index.protocol import Collection, Engine
from tenants.storage.sealed import write_draft

FILE = "index-service.json"
_HOST = "127.0.0.1"
_OF_COLLECTION = frozenset({"upsert", "describe", "delete", "search", "inverse_frequencies", "fetch", "count"})

log = logging.getLogger("opora.index")


def _read_only(values: dict[str, Json]) -> MappingProxyType[str, Json]:
    return MappingProxyType(values)


# Payloads are read-only; pickle does not find their type by its name.
copyreg.pickle(MappingProxyType, lambda proxy: (_read_only, (dict(proxy),)))


class IndexListener(ThreadingTCPServer):
    """Shares the index of this process until it is closed. Connections of commands block, so each has a thread.

    :param folder: the data folder, where commands look for the address.
    :param opened: returns the chunks of a generation of the tenant in context.
    :param perform: does something with a generation as a whole: `exists`, `create`, `set_aside`, `remove`.
    """

    daemon_threads = True

    def __init__(
        self, folder: Path, opened: Callable[[int], Collection], perform: Callable[[str, int, int], object]
    ) -> None:
        super().__init__((_HOST, 0), _Command)
        self.opened, self.perform = opened, perform
        self.key = token_bytes(32)
        self._path = folder / FILE
        about = {"port": self.server_address[1], "key": self.key.hex()}
        write_draft(self._path, json.dumps(about)).replace(self._path)
        Thread(target=self.serve_forever, name="index-listener", daemon=True).start()

    def close(self) -> None:
        """Accept nothing more. A command in the middle of its work gets `TryAgain`."""
        self._path.unlink(missing_ok=True)
        self.shutdown()
        self.server_close()


class _Command(BaseRequestHandler):
    """A connection of a command, which asks for one operation after the other."""

    server: IndexListener

    def handle(self) -> None:
        """Answer until the command disconnects or fails to prove that it knows the key."""
        connection = Connection(self.request.detach())
        with connection, suppress(EOFError, OSError, AuthenticationError):
            deliver_challenge(connection, self.server.key)
            answer_challenge(connection, self.server.key)
            while True:
                tenant_id, operation, generation, values, given = connection.recv()
                with acting_as(Tenant(tenant_id, COMMAND_LINE)):
                    self._answer(connection, operation, generation, values, given)

    def _answer(
        self, connection: Connection, operation: str, generation: int, values: tuple[Any, ...], given: dict[str, Any]
    ) -> None:
        try:
            if operation == "scan":
                for hits in batches(self.server.opened(generation).scan(**given), given["batch"]):
                    connection.send(("more", hits))
                answer: object = None
            elif operation in _OF_COLLECTION:
                answer = getattr(self.server.opened(generation), operation)(*values, **given)
            else:
                answer = self.server.perform(operation, generation, *values)
            connection.send(("done", answer))
        except OporaError as fault:
            connection.send(("fault", fault))
        except (EOFError, OSError):
            raise
        except Exception as fault:
            log.error("a command of tenant %r: %s", context.current().tenant_id, trail(fault))
            connection.send(("fault", InternalFault("index_failed")))


class RemoteFolder(Engine):
    """The collections of the embedded engine, in the service that has them.

    :param folder: the data folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._idle: list[Connection] = []

    def exists(self, placement: Placement) -> bool:
        return bool(self.ask("exists", placement.generation, 0))

    def create(self, placement: Placement, tenant_id: str, dimensions: int = 0) -> None:  # noqa: ARG002
        self.ask("create", placement.generation, dimensions)

    def open(self, placement: Placement, tenant_id: str, encoder: str, dimensions: int = 0) -> Collection:  # noqa: ARG002
        return cast("Collection", RemoteCollection(self, placement.generation, encoder, dimensions))

    def set_aside(self, placement: Placement) -> None:
        self.ask("set_aside", placement.generation, 0)

    def remove(self, placement: Placement) -> None:
        self.ask("remove", placement.generation, 0)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def ask(self, operation: str, generation: int, *values: object, **given: object) -> Any:  # noqa: ANN401 - by the operation
        """Have the service do something with a collection. Raises what the collection raises there."""
        for kind, answer in self.stream(operation, generation, *values, **given):
            if kind == "done":
                return answer
        raise TryAgain

    def stream(self, operation: str, generation: int, *values: object, **given: object) -> Iterator[tuple[str, Any]]:
        """The same, with what comes before the end of it."""
        with self._connection() as connection:
            connection.send((context.current().tenant_id, operation, generation, values, given))
            kind = "more"
            while kind == "more":
                kind, answer = connection.recv()
                if kind != "fault":
                    yield kind, answer
        if kind == "fault":
            raise answer

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Yield a connection that no other call uses; keep it for the next call unless this one fails or stops."""
        with TryAgain().instead_of(OSError, EOFError, ValueError, AuthenticationError):
            connection = self._idle.pop() if self._idle else self._connected()
        try:
            yield connection
        except (OSError, EOFError) as gone:
            connection.close()
            raise TryAgain from gone
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def _connected(self) -> Connection:
        about = json.loads(self._path.read_text(encoding="utf-8"))
        return Client((_HOST, int(about["port"])), authkey=bytes.fromhex(about["key"]))


class RemoteCollection:
    """Chunks of one tenant in the service that has them: a `Collection` whose calls are made there."""

    version: str | None = None
    broken = False

    def __init__(self, folder: RemoteFolder, generation: int, encoder: str, dimensions: int) -> None:
        self.encoder = encoder
        self.dimensions = dimensions
        self._folder = folder
        self._generation = generation

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        """Return a method of the service's collection."""
        if operation not in _OF_COLLECTION:
            raise AttributeError(operation)
        return partial(self._folder.ask, operation, self._generation)

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        wanted = {"conditions": conditions, "batch": batch, "dense": dense}
        for kind, hits in self._folder.stream("scan", self._generation, **wanted):
            if kind == "more":
                yield from hits

    def close(self) -> None:
        """Do nothing: the service has it open for itself."""

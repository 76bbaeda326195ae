"""Exclusive locks between processes: tenant ingestion, chat replies, nightly checks, and process liveness.

Two ingest runs would delete each other's chunks as leftovers. Processes on one data folder use file locks, which the
operating system releases when a process ends, however it ends; processes that share a database server use leases there
(`tenants.work.leases`), which end unless their process renews them.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from threading import Lock, RLock
from time import monotonic, sleep
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from settings import Settings, get_settings
from tenants.core import context
from tenants.core.context import Tenant
from tenants.core.errors import Busy
from tenants.core.names import collection_name
from tenants.core.scoped import scoped
from tenants.storage import database

if TYPE_CHECKING:
    from tenants.work.leases import LeaseClaims

_POLL_SECONDS = 0.05

_FOLDER = "claims"
_SERVICE = "~service"
_PROCESS = "~process-"
_CHAT = "~chat-"
"""No collection's name begins like these."""

Claims: TypeAlias = "FileClaims | LeaseClaims"
"""The claims of one process, by name. Thread-safe; a held claim is refused to every caller, also in this process."""


class FileClaims:
    """Claims among the processes of one machine, or of several that share a file system with locks.

    :param folder: of the lock files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, BinaryIO] = {}
        self._lock = Lock()

    def take(self, name: str) -> bool:
        """Claim a name. False when it is taken."""
        with self._lock:
            if name in self._held:
                return False
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = (self._folder / name).open("ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                return False
            if not os.fstat(file.fileno()).st_nlink:
                # Its holder has just removed the file: a new file of this name may be locked by another process.
                file.close()
                return False
            self._held[name] = file
            return True

    def holds(self, name: str) -> bool:
        """Whether this process still holds the claim."""
        return name in self._held

    def is_held(self, name: str) -> bool:
        """Whether any process holds the claim."""
        path = self._folder / name
        if name in self._held:
            return True
        try:
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return True
        except FileNotFoundError:
            return False
        if name.startswith((_PROCESS, _CHAT)):
            path.unlink(missing_ok=True)  # this name is not used again
        return False

    def want(self, name: str) -> None:
        """Do nothing: processes on one data folder are a service and short commands, which wait."""

    def is_wanted(self, name: str) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def release(self, name: str) -> None:
        """Release a claim."""
        with self._lock:
            self._let_go(name)

    def close(self) -> None:
        """Release all claims."""
        with self._lock:
            for name in tuple(self._held):
                self._let_go(name)

    def _let_go(self, name: str) -> None:
        file = self._held.pop(name, None)
        if file is not None:
            if name.startswith((_PROCESS, _CHAT)):
                (self._folder / name).unlink(missing_ok=True)
            file.close()


class Claim:
    """The right to ingest for a tenant."""

    def __init__(self, claims: Claims, name: str) -> None:
        self._claims = claims
        self.name = name

    def check(self) -> None:
        """Raise `Busy` with the code `ingest_busy` when the claim was lost to another process meanwhile."""
        if not self._claims.holds(self.name):
            raise Busy("ingest_busy")


_HELD: ContextVar[Claim | None] = ContextVar("opora_ingest_claim", default=None)


@contextmanager
def ingesting(patience: float | None = None) -> Iterator[Claim]:
    """Run the block as the only ingestion for the tenant in context. May be nested.

    :param patience: seconds to wait for the previous run; None waits without limit. Raises `Busy` with the code
        `ingest_busy` after that.
    """
    claims, name = _claims(get_settings()), collection_name(context.current().tenant_id)
    outer = _HELD.get()
    if outer is not None and outer.name == name:
        yield outer
        return
    with holding(name, patience), scoped(_HELD, Claim(claims, name)) as claim:
        yield claim


def want_ingesting() -> None:
    """Ask the process that ingests for the tenant in context to make room for a change."""
    _claims(get_settings()).want(collection_name(context.current().tenant_id))


def is_ingesting_wanted() -> bool:
    """Whether a change of the tenant in context waits in another process until this one makes room."""
    return _claims(get_settings()).is_wanted(collection_name(context.current().tenant_id))


@contextmanager
def holding(name: str, patience: float | None = None) -> Iterator[None]:
    """Run the block while holding this name, exclusive among all threads and processes.

    :param patience: seconds to wait for the current holder; None waits without limit. Raises `Busy` with the code
        `ingest_busy` after that.
    """
    claims, started = _claims(get_settings()), monotonic()
    while not claims.take(name):
        if patience is not None and monotonic() - started >= patience:
            raise Busy("ingest_busy")
        sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        claims.release(name)


def this_process() -> str:
    """Return a name of this process for its work; other processes can check whether it is alive."""
    return _process(get_settings()).name


def is_alive(process: str) -> bool:
    """Return whether the process of that name is running. Raises `TryAgain` when the database cannot be reached."""
    return process == this_process() or _claims(get_settings()).is_held(_PROCESS + process)


class ChatClaim:
    """The right to answer in a chat of the tenant in context."""

    def __init__(self, chat_id: str) -> None:
        self._name = f"{_CHAT}{Tenant(context.current().tenant_id, '').key(chat_id)}"
        self._held = False

    def take(self) -> bool:
        """Take the claim if it is free. Raises `TryAgain` if the lock cannot be checked."""
        if not self._held:
            self._held = _claims(get_settings()).take(self._name)
        return self._held

    def release(self) -> None:
        """Release the claim."""
        if self._held:
            self._held = False
            _claims(get_settings()).release(self._name)


def hold_index(settings: Settings) -> None:
    """Claim the embedded index for this service, until `close_all`: the engine opens a folder in one process alone.

    Raises `Busy` with the code `data_in_use` while another service has it. A Qdrant server is for any number of them.
    """
    claims = _of_folder(settings.data_dir)
    if settings.qdrant_url or claims.holds(_SERVICE):
        return
    if not claims.take(_SERVICE):
        raise Busy("data_in_use")
    _service_file(settings).write_text(json.dumps([settings.host, settings.port, settings.browsed_at]))


def index_is_held(settings: Settings) -> bool:
    """Whether a service has the embedded index of the data folder."""
    return not settings.qdrant_url and _of_folder(settings.data_dir).is_held(_SERVICE)


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """Where a service listens, and its address for browsers. Its port may be an option of its command line."""

    host: str
    port: int
    browsed_at: str


def service_place(settings: Settings) -> ServicePlace | None:
    """Return the place of the service that has the embedded index of the data folder, or None."""
    if not index_is_held(settings):
        return None
    try:
        host, port, browsed_at = json.loads(_service_file(settings).read_text())
    except (OSError, ValueError):
        return ServicePlace(settings.host, settings.port, settings.browsed_at)
    return ServicePlace(host, port, browsed_at)


def close_all() -> None:
    """Release every claim of this process."""
    with _MAKING:
        made = [*(process.claims for process in _PROCESSES.values()), *_FOLDERS.values()]
        _PROCESSES.clear()
        _FOLDERS.clear()
    for claims in made:
        claims.close()


@dataclass(frozen=True, slots=True)
class _Process:
    """This process, as others on the same database see it."""

    name: str
    claims: Claims


_PROCESSES: dict[str, _Process] = {}
"""By database, so that two installations in one process, such as two tests, do not meet."""
_FOLDERS: dict[Path, FileClaims] = {}
_MAKING = RLock()


def _claims(settings: Settings) -> Claims:
    return _process(settings).claims


def _process(settings: Settings) -> _Process:
    with _MAKING:
        known = _PROCESSES.get(settings.database)
        if known is None:
            known = _PROCESSES[settings.database] = _new_process(settings)
        return known


def _new_process(settings: Settings) -> _Process:
    name = token_hex(8)
    if database.is_shared(settings):
        from tenants.work.leases import LeaseClaims

        return _Process(name, LeaseClaims(settings, _PROCESS + name))
    claims = _of_folder(settings.data_dir)
    claims.take(_PROCESS + name)
    return _Process(name, claims)


def _service_file(settings: Settings) -> Path:
    """Return the lock file of the service. Its text, the service's place, counts only while the lock is held."""
    return settings.data_dir / _FOLDER / _SERVICE


def _of_folder(data_dir: Path) -> FileClaims:
    with _MAKING:
        return _FOLDERS.setdefault(data_dir, FileClaims(data_dir / _FOLDER))

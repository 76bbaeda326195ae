"""Who may ingest for a tenant: one run at a time, of all threads and processes of the installation.

Two runs would take each other's chunks for leftovers. Processes on one data folder are kept apart by locks on files,
which the operating system releases however a process ends. Where processes share a Qdrant server, a
database and a data folder across machines, Redis keeps them apart (`OPORA_REDIS_URL`, `tenants.claims_redis`).

Why not Hayhooks' durable jobs, which are on Redis too: they hand out work in the order it came, so one tenant's bulk
load would make all others wait; nothing there keeps two workers from two jobs of one tenant; their limit counts all
tenants together; and a job would live in Redis, which by default may forget its last second, while an acknowledged
upload is never to be lost. So jobs are rows of the records' database, and Redis holds nothing that cannot be lost.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import BinaryIO, Protocol

from settings import Settings, get_settings
from tenants import context
from tenants.errors import Busy
from tenants.names import collection_name

_POLL_SECONDS = 0.05


_SERVICE = "~service"
"""No collection's name begins like this."""


class Claims(Protocol):
    """The claims of one process, by name. Thread-safe; what is held is refused to all others, this process included."""

    def take(self, name: str) -> bool:
        """Claim a name. False when it is taken."""

    def holds(self, name: str) -> bool:
        """Whether this process still holds the claim."""

    def release(self, name: str) -> None:
        """Release a claim, even one that was lost."""

    def close(self) -> None:
        """Release all claims."""


class FileClaims:
    """Claims among the processes of one machine, or of several that share a file system with locks.

    :param folder: where the lock files are.
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
            self._held[name] = file
            return True

    def holds(self, name: str) -> bool:
        """Whether this process still holds the claim."""
        return name in self._held

    def release(self, name: str) -> None:
        """Release a claim."""
        with self._lock:
            file = self._held.pop(name, None)
            if file is not None:
                file.close()

    def close(self) -> None:
        """Release all claims."""
        with self._lock:
            while self._held:
                self._held.popitem()[1].close()


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
    """Run the block as the only one that ingests for the tenant in context. May be nested.

    :param patience: seconds to wait for the run before; None waits as long as it takes. Raises `Busy` with the code
        `ingest_busy` when they are over.
    """
    claims, name = _claims(get_settings()), collection_name(context.current().tenant_id)
    outer = _HELD.get()
    if outer is not None and outer.name == name:
        yield outer
        return
    started = monotonic()
    while not claims.take(name):
        if patience is not None and monotonic() - started >= patience:
            raise Busy("ingest_busy")
        sleep(_POLL_SECONDS)
    claim = Claim(claims, name)
    token = _HELD.set(claim)
    try:
        yield claim
    finally:
        _HELD.reset(token)
        claims.release(name)


def hold_index(settings: Settings) -> None:
    """Claim the embedded index for this service, until `close_all`: the engine opens a folder in one process alone.

    Raises `Busy` with the code `data_in_use` while another service has it. A Qdrant server is for any number of them.
    """
    claims = _of_folder(settings.data_dir)
    if not settings.qdrant_url and not claims.holds(_SERVICE) and not claims.take(_SERVICE):
        raise Busy("data_in_use")


def close_all() -> None:
    """Release every claim of this process."""
    settings = get_settings()
    for claims in (_claims(settings), _of_folder(settings.data_dir)):
        claims.close()
    _claims.cache_clear()
    _of_folder.cache_clear()


@lru_cache(maxsize=1)
def _claims(settings: Settings) -> Claims:
    url = settings.redis_url.get_secret_value()
    if url:
        from tenants.claims_redis import RedisClaims

        return RedisClaims(url)
    return _of_folder(settings.data_dir)


@lru_cache(maxsize=1)
def _of_folder(data_dir: Path) -> FileClaims:
    return FileClaims(data_dir / "claims")

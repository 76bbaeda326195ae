"""Files of tenants in a local folder or, by `OPORA_FILES_URL`, in S3 or another store that fsspec knows.

Threat: a name that leads to the files of another tenant or out of the store. Paths are made in `path` alone, from the
tenant in context and from names that are checked.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from time import monotonic
from typing import IO, Any, BinaryIO, Literal, Self, TypeAlias, cast, get_args

from fsspec import AbstractFileSystem, get_filesystem_class
from fsspec.callbacks import Callback
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from settings import Settings, get_settings
from tenants.core import context
from tenants.core.errors import CallerError, InternalFault, OporaError, TryAgain
from tenants.core.names import collection_name

Kind: TypeAlias = Literal["uploads", "chat-files"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Folders of the store; each has one folder for each tenant."""

_BLOCK_BYTES = 5_242_880
"""Part of an upload to S3, the smallest that it takes: over a slow line, a larger one takes too long."""

_S3_CONFIG = {"connect_timeout": 5, "read_timeout": 10, "retries": {"max_attempts": 0}}
_S3_ATTEMPTS = 2
"""Both libraries below fsspec repeat failed requests: a server that does not answer would take two minutes."""

_S3_SECONDS = 20.0
"""Time for a request to S3 and its response, except a file's content, with up to `_BLOCK_BYTES`."""

_READ_SECONDS, _FETCH_SECONDS = 30.0, 600.0
"""Time for a file of a chat, and for the files of a job."""

_DEPTH = 3
"""Folders above those of a job or of chats: of the tenant, of the kind, and the store."""


def check(settings: Settings) -> None:
    """Raise `CallerError` with the code `files_url_invalid` if the store is of an unknown or uninstalled kind."""
    try:
        _opened(_url(settings))
    except (ImportError, ValueError) as unknown:
        raise CallerError("files_url_invalid", reason=str(unknown)) from unknown


def path(kind: Kind, *names: str) -> str:
    """Return the path of a folder or file of the tenant in context."""
    for segment in (segment for name in names for segment in name.split("/")):
        if segment in {"", ".", ".."} or "\0" in segment or "\\" in segment:
            raise InternalFault("file_path_invalid")
    return "/".join([_root(kind), collection_name(context.current().tenant_id), *names])


def local(stored: str) -> Path | None:
    """Return the path on this machine, if the store is a local folder."""
    return Path(stored) if _is_local() else None


@contextmanager
def storing() -> Iterator[None]:
    """Convert errors of the store: `TryAgain` with the code `storage_full` for a local folder that takes no more, and
    `unavailable` for a server."""
    try:
        yield
    except (FileNotFoundError, OporaError):
        raise
    except Exception as failed:
        if not _is_local():
            raise TryAgain from failed
        if isinstance(failed, OSError):
            raise TryAgain("storage_full") from failed
        raise


def create(stored: str) -> BinaryIO:
    """Open a new file for writing; it exists once it is closed by `finish`."""
    if _is_local():
        Path(stored).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return cast("BinaryIO", _store().open(stored, "xb" if _is_local() else "wb", block_size=_BLOCK_BYTES))


def finish(file: BinaryIO) -> None:
    """Close a written file: it is on the disk, or on the server, when this returns."""
    if _is_local():
        file.flush()
        os.fsync(file.fileno())
    file.close()


def abandon(file: BinaryIO) -> None:
    """Close a file that will be removed."""
    with suppress(OSError):
        discard = getattr(file, "discard", None)
        file.close() if discard is None or _is_local() else discard()


def write(stored: str, content: bytes) -> None:
    """Store a file. Raises `TryAgain`."""
    with storing():
        file = create(stored)
        try:
            file.write(content)
        except BaseException:
            abandon(file)
            raise
        finish(file)
        if _is_local():
            _sync(list(Path(stored).parents)[:_DEPTH])


def settle(folder: str) -> None:
    """Sync a local folder and those above and in it, so that a power failure cannot lose files in them."""
    if _is_local():
        _sync([*(Path(at) for at, _, _ in os.walk(folder)), *list(Path(folder).parents)[:_DEPTH]])


class _Bounded(Callback):  # type: ignore[misc] # fsspec has no types
    """Ends a transfer of files that is too large or too slow.

    Threat: a store that sends without end fills the memory or the disk, or keeps a thread.
    """

    def __init__(self, most_bytes: int, seconds: float) -> None:
        super().__init__()
        self._most_bytes, self._until = most_bytes, monotonic() + seconds

    def relative_update(self, inc: int = 1) -> None:
        """Count received bytes. Raises `OSError`."""
        super().relative_update(inc)
        if self.value > self._most_bytes or monotonic() > self._until:
            raise OSError("the store sends too much or too slowly")

    def branched(self, *_paths: str, **_given: object) -> Self:
        """Count the bytes of all files of a folder together."""
        return self


def read(stored: str, most_bytes: int) -> bytes:
    """Return the content of a file. Raises `FileNotFoundError`, `TryAgain`."""
    with storing():
        if _is_local():
            return Path(stored).read_bytes()
        with TemporaryDirectory() as folder:
            copied = Path(folder) / "file"
            _store().get_file(stored, str(copied), callback=_Bounded(most_bytes, _READ_SECONDS))
            return copied.read_bytes()


def blocks(stored: str) -> Iterator[bytes]:
    """Yield the content of a file. Raises `FileNotFoundError`, `TryAgain`."""
    with storing(), _store().open(stored, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def copy(stored: str, target: Path) -> None:
    """Copy a file to this machine, by a link if it is on the same disk. Raises `FileNotFoundError`, `TryAgain`."""
    with storing():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(stored, target) if _is_local() else _store().get_file(stored, str(target))
        except OSError as other_disk:
            if other_disk.errno != errno.EXDEV:
                raise
            shutil.copyfile(stored, target)


def fetch(stored: str, folder: Path) -> None:
    """Copy a folder of the store to this machine. Raises `FileNotFoundError`, `TryAgain`."""
    with storing():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        bounded = _Bounded(get_settings().max_files_bytes, _FETCH_SECONDS)
        _store().get(f"{stored}/", f"{folder}/", recursive=True, callback=bounded)


def names(folder: str) -> tuple[str, ...]:
    """Return the names in a folder; none if it does not exist."""
    with storing():
        try:
            found = _store().ls(folder, detail=False)
        except FileNotFoundError:
            return ()
    return tuple(sorted(PurePosixPath(str(one)).name for one in found))


def changed_at(stored: str) -> datetime | None:
    """Return when a file was written; None if it does not exist."""
    with storing():
        try:
            return cast("datetime", _store().modified(stored))
        except FileNotFoundError:
            return None


def remove(stored: str) -> None:
    """Remove a file, or a folder with all files in it, if it exists. Raises `TryAgain`."""
    with storing(), suppress(FileNotFoundError):
        _store().rm(stored, recursive=True)


def is_empty(settings: Settings) -> bool:
    """Whether the store has no files of any tenant."""
    return not any(_store(settings).find(_root(kind, settings)) for kind in KINDS if _exists(kind, settings))


def clear(settings: Settings) -> None:
    """Remove the files of all tenants, for a restore that failed."""
    for kind in KINDS:
        if _exists(kind, settings):
            _store(settings).rm(_root(kind, settings), recursive=True)


def unpack(name: str, source: IO[bytes]) -> None:
    """Store a file of a backup under its path in the backup, which begins with the kind."""
    kind, *rest = PurePosixPath(name).parts
    stored = "/".join([_root(cast("Kind", kind)), *rest])
    with storing():
        file = create(stored)
        while block := source.read(_BLOCK_BYTES):
            file.write(block)
        finish(file)


def packed(stored: str) -> str:
    """Return the path of a file in a backup."""
    return stored.removeprefix(f"{_base(get_settings())}/")


def _sync(folders: Iterable[Path]) -> None:
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _exists(kind: Kind, settings: Settings) -> bool:
    return bool(_store(settings).exists(_root(kind, settings)))


def _root(kind: Kind, settings: Settings | None = None) -> str:
    return f"{_base(settings or get_settings())}/{kind}"


def _base(settings: Settings) -> str:
    return _opened(_url(settings))[1].rstrip("/")


def _store(settings: Settings | None = None) -> AbstractFileSystem:
    return _opened(_url(settings or get_settings()))[0]


def _is_local() -> bool:
    return isinstance(_store(), LocalFileSystem)


def _url(settings: Settings) -> str:
    return settings.files_url or str(settings.data_dir.resolve())


@lru_cache(maxsize=8)
def _opened(url: str) -> tuple[AbstractFileSystem, str]:
    is_s3 = url.startswith("s3://")
    store, base = url_to_fs(url, use_listings_cache=False, **(_s3_options() if is_s3 else {}))  # others write, too
    if is_s3:
        store.retries = _S3_ATTEMPTS
    return store, str(base)


def _s3_options() -> dict[str, dict[str, object]]:
    """Return the options of s3fs, with a limit on the time of each request.

    aiobotocore 3.10 limits only the wait for a response: a server that accepts an upload and says nothing keeps its
    thread until the connection ends.
    """
    get_filesystem_class("s3")  # names the missing package
    from aiobotocore.httpsession import AIOHTTPSession
    from botocore.exceptions import ReadTimeoutError

    class Session(AIOHTTPSession):  # type: ignore[misc] # aiobotocore has no types
        async def send(self, request: Any) -> object:  # noqa: ANN401 - a request of botocore
            try:
                async with asyncio.timeout(_S3_SECONDS):
                    return await super().send(request)
            except TimeoutError as late:
                raise ReadTimeoutError(endpoint_url=request.url) from late

    return {"config_kwargs": {**_S3_CONFIG, "http_session_cls": Session}}

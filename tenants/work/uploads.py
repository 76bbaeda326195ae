"""Uploaded files on their way into the knowledge base: one folder per tenant and job under the data folder.

Where replicas share a database, files arrive there (`tenants.work.upload_pieces`), and the folder is a copy on
the replica that does the job.

Threat: a name that leads out of the folder (`../`, an absolute path, a link), that hides a file, that no file system
takes or that two files share. Names are checked before anything is made of them, and a file is only ever created new.
"""

import fcntl
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Protocol

from settings import get_settings
from tenants.core import context
from tenants.core.errors import Invalid, NotFound, TooLarge, TryAgain
from tenants.core.names import collection_name
from tenants.storage import database, disk
from tenants.storage.cache import Key
from tenants.work import jobs, upload_pieces
from tenants.work.upload_pieces import PIECE_BYTES, Pieces

MAX_NAME_LENGTH = 400
MAX_SEGMENT_BYTES = 255
MAX_DEPTH = 16
MAX_FILES = 1_000
_FOLDER = "uploads"
_CHECK_BYTES = 1_000_000


def check_name(name: str) -> str:
    """Return a file's name as a path: `/` between folders. Raises `Invalid` with the code `file_name_invalid`."""
    segments = name.replace("\\", "/").split("/")
    fits = len(name) <= MAX_NAME_LENGTH and len(segments) <= MAX_DEPTH and name.isprintable()
    if not fits or not all(map(_is_plain, segments)):
        raise Invalid("file_name_invalid")
    return "/".join(segments)


def _is_plain(segment: str) -> bool:
    # A leading dot is `.`, `..` or a hidden file, which ingestion skips; a colon is a drive or a stream on Windows.
    is_allowed = segment.strip() and segment[0] != "." and ":" not in segment
    return bool(is_allowed) and len(segment.encode()) <= MAX_SEGMENT_BYTES


def folder(job_id: str) -> Path:
    """Return the folder of a job's files on this machine, for the tenant in context."""
    return _tenant_folder() / job_id


def fetched(job_id: str) -> Path:
    """Return the folder once its files are there. Raises `NotFound` with the code `upload_missing`."""
    path = folder(job_id)
    with _storing():
        upload_pieces.fetch(job_id, path)
    if not path.is_dir():
        raise NotFound("upload_missing")
    return path


def folder_of(tenant_id: str, job_id: str) -> Path:
    """Return the folder of a job's files, for any tenant; for administration of the installation."""
    return _folder_of(tenant_id) / job_id


def remove(job_id: str) -> None:
    """Remove a job's files, if there are any."""
    shutil.rmtree(folder(job_id), ignore_errors=True)
    upload_pieces.remove(job_id)


def remove_all() -> None:
    """Remove the files of all jobs of the tenant in context."""
    shutil.rmtree(_tenant_folder(), ignore_errors=True)


def abandoned() -> tuple[str, ...]:
    """Return the jobs of the tenant in context that left files and have ended or were never accepted."""
    home, unheld = _tenant_folder(), list[str]()
    if home.is_dir():
        with _locked(home):
            # In this order, because an upload becomes a job before its folder is unlocked.
            unheld += [path.name for path in sorted(home.iterdir()) if _is_unheld(path)]
    if database.is_shared():
        unheld += upload_pieces.silent()
    return tuple(job_id for job_id in dict.fromkeys(unheld) if not jobs.is_open(job_id))


@dataclass(slots=True)
class _Arriving:
    """Size of a tenant's uploads in this process while they arrive."""

    uploads: int = 0
    size: int = 0


_ARRIVING: defaultdict[Key, _Arriving] = defaultdict(_Arriving)
_COUNTING = Lock()


class Upload:
    """Files of one job while they arrive. Holds a lock on its folder until it is closed or its process ends.

    Uploads in progress count like queued jobs, so that a tenant cannot fill the disk with unfinished uploads.

    :param job_id: of the job that will own them.
    """

    def __init__(self, job_id: str) -> None:
        self.names: list[str] = []
        self.size = 0
        self._unchecked = 0
        with _COUNTING:
            self._arriving = _ARRIVING[get_settings().database, context.current().tenant_id]
            self._arriving.uploads += 1
        try:
            self._check()
            self._create(job_id)
        except BaseException:
            self._leave()
            raise

    def add(self, size: int) -> None:
        """Count the received bytes. Raises `storage_full`, or `QueueFull` if the tenant's uploads exceed the limit."""
        self.size += size
        self._unchecked += size
        with _COUNTING:
            self._arriving.size += size
        if self._unchecked >= _CHECK_BYTES:
            self._unchecked = 0
            self._check()

    def _check(self) -> None:
        disk.check()
        jobs.check_capacity(self._arriving.uploads - 1, self._arriving.size)

    def _leave(self) -> None:
        with _COUNTING:
            self._arriving.uploads -= 1
            self._arriving.size -= self.size

    def _create(self, job_id: str) -> None:
        self._pieces = Pieces(job_id) if database.is_shared() else None
        if self._pieces is not None:
            return
        self._root = folder(job_id)
        home = self._root.parent
        with _storing():
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(home):
                self._root.mkdir(mode=0o700)
                self._hold = _open_directory(self._root)
                fcntl.flock(self._hold, fcntl.LOCK_EX)

    def file(self, name: str) -> "UploadedFile":
        """Add a file. Raises `Invalid`: `file_name_invalid`, `file_name_duplicate`; `TooLarge`: `files_too_many`."""
        path = check_name(name)
        if len(self.names) >= MAX_FILES:
            raise TooLarge("files_too_many", limit=MAX_FILES)
        if self._pieces is not None:
            if any(f"{path}/".startswith(f"{name}/") or name.startswith(f"{path}/") for name in self.names):
                raise Invalid("file_name_duplicate")
            self.names.append(path)
            return UploadedFile(self, _PieceStream(self._pieces, path))
        target = self._root / path
        with _storing():
            try:
                target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                stream = target.open("xb")
            except (FileExistsError, NotADirectoryError) as taken:
                raise Invalid("file_name_duplicate") from taken
        self.names.append(path)
        return UploadedFile(self, _FileStream(stream))

    def settle(self) -> None:
        """Sync the folders to disk, so that a power failure cannot lose files that were already synced."""
        if self._pieces is not None:
            return
        with _storing():
            for at, _, _ in os.walk(self._root):
                _sync(Path(at))
            for above in (self._root.parent, self._root.parent.parent, self._root.parent.parent.parent):
                _sync(above)

    def close(self, *, keep: bool) -> None:
        """Release the folder.

        :param keep: it is a job's now; otherwise it is removed.
        """
        try:
            if self._pieces is None:
                if not keep:
                    shutil.rmtree(self._root, ignore_errors=True)
                os.close(self._hold)
            elif not keep and self.names:
                upload_pieces.remove(self._pieces.job_id)
        finally:
            self._leave()


class _Stream(Protocol):
    """Where the bytes of one file go."""

    def write(self, data: bytes) -> None:
        """Append."""

    def finish(self) -> None:
        """Put everything where it is not lost."""

    def abandon(self) -> None:
        """Release a file that will be discarded."""


class _FileStream:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        self._file.close()


class _PieceStream:
    def __init__(self, pieces: Pieces, name: str) -> None:
        self._pieces = pieces
        self._name = name
        self._buffer = bytearray()
        self._stored = False

    def write(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= PIECE_BYTES:
            self._store(bytes(self._buffer[:PIECE_BYTES]))
            del self._buffer[:PIECE_BYTES]

    def finish(self) -> None:
        if self._buffer or not self._stored:  # an empty file is one, too
            self._store(bytes(self._buffer))

    def abandon(self) -> None:
        self._buffer.clear()

    def _store(self, data: bytes) -> None:
        self._pieces.add(self._name, data)
        self._stored = True


class UploadedFile:
    """A file while it arrives."""

    def __init__(self, upload: Upload, stream: _Stream) -> None:
        self.size = 0
        self._upload = upload
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Append. Raises `TryAgain` with the code `storage_full` when the disk takes no more."""
        with _storing():
            self._stream.write(data)
        self.size += len(data)
        self._upload.add(len(data))

    def close(self) -> None:
        """Finish the file: it is on disk when this returns."""
        with _storing():
            self._stream.finish()

    def abandon(self) -> None:
        """Close a file that will be discarded."""
        self._stream.abandon()


@contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        raise TryAgain("storage_full") from failed


def _sync(directory: Path) -> None:
    handle = _open_directory(directory)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    handle = _open_directory(directory)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_unheld(directory: Path) -> bool:
    try:
        handle = _open_directory(directory)
    except FileNotFoundError:
        # Its job has ended just now.
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _open_directory(directory: Path) -> int:
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY)


def _tenant_folder() -> Path:
    return _folder_of(context.current().tenant_id)


def _folder_of(tenant_id: str) -> Path:
    return get_settings().data_dir / _FOLDER / collection_name(tenant_id)

"""Uploaded files on their way into the knowledge base: one folder per tenant and job in the store of files.

Threat: a name that leads out of the folder (`../`, an absolute path, a link), that hides a file, that no file system
takes or that two files share. Names are checked before anything is made of them, and a file is only ever created new.
"""

import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import BinaryIO

from settings import get_settings
from tenants.core import context
from tenants.core.errors import Invalid, NotFound, TooLarge
from tenants.core.names import collection_name
from tenants.storage import disk, files
from tenants.storage.cache import Key, own_key
from tenants.work import jobs

MAX_NAME_LENGTH = 400
MAX_SEGMENT_BYTES = 255
MAX_DEPTH = 16
MAX_FILES = 1_000
ABANDONED = timedelta(days=1)
"""An upload of another process that began so long ago and is no job was abandoned: its connection would have ended."""

_FETCHED = "fetched"
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


def fetched(job_id: str) -> Path:
    """Return a folder on this machine with the files of a job. Raises `NotFound` with the code `upload_missing`."""
    stored = _stored(job_id)
    folder = files.local(stored)
    if folder is None:
        folder = _fetched() / job_id
        shutil.rmtree(folder, ignore_errors=True)
        with NotFound("upload_missing").instead_of(FileNotFoundError):
            files.fetch(stored, folder)
    if not folder.is_dir():
        raise NotFound("upload_missing")
    return folder


def remove(job_id: str) -> None:
    """Remove a job's files, if there are any."""
    files.remove(_stored(job_id))
    shutil.rmtree(_fetched() / job_id, ignore_errors=True)


def remove_all() -> None:
    """Remove the files of all jobs of the tenant in context."""
    files.remove(files.path("uploads"))
    shutil.rmtree(_fetched(), ignore_errors=True)


def abandoned() -> tuple[str, ...]:
    """Return the jobs of the tenant in context that left files and have ended or were never accepted."""
    copies = _fetched()
    found = {*files.names(files.path("uploads")), *(path.name for path in copies.glob("*"))}
    with _COUNTING:
        # Before the jobs are looked at, because an upload becomes a job before it has arrived.
        arriving = set(_ARRIVING[own_key()].job_ids)
    return tuple(job_id for job_id in sorted(found - arriving) if _is_over(job_id))


def _is_over(job_id: str) -> bool:
    state = jobs.state_of(job_id)
    return state in jobs.FINISHED if state else jobs.age(job_id) > ABANDONED


def _stored(job_id: str) -> str:
    return files.path("uploads", job_id)


def _fetched() -> Path:
    """Return the folder for copies of this tenant's uploads, where the store is not on this machine."""
    return get_settings().data_dir / _FETCHED / collection_name(context.current().tenant_id)


@dataclass(slots=True)
class _Arriving:
    """Size of a tenant's uploads in this process while they arrive."""

    job_ids: set[str] = field(default_factory=set)
    size: int = 0


_ARRIVING: defaultdict[Key, _Arriving] = defaultdict(_Arriving)
_COUNTING = Lock()


class Upload:
    """Files of one job while they arrive.

    Uploads in progress count like queued jobs, so that a tenant cannot fill the disk with unfinished uploads.

    :param job_id: of the job that will own them.
    """

    def __init__(self, job_id: str) -> None:
        self.names: list[str] = []
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self.size = 0
        self._unchecked = 0
        self._job_id = job_id
        self._stored = _stored(job_id)
        with _COUNTING:
            self._arriving = _ARRIVING[own_key()]
            self._arriving.job_ids.add(job_id)
        try:
            self._check()
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
        jobs.check_capacity(len(self._arriving.job_ids) - 1, self._arriving.size)

    def _leave(self) -> None:
        with _COUNTING:
            self._arriving.job_ids.discard(self._job_id)
            self._arriving.size -= self.size

    def file(self, name: str) -> "UploadedFile":
        """Add a file. Raises `Invalid`: `file_name_invalid`, `file_name_duplicate`; `TooLarge`: `files_too_many`."""
        path = check_name(name)
        if len(self.names) >= MAX_FILES:
            raise TooLarge("files_too_many", limit=MAX_FILES)
        folders = {folder.as_posix() for folder in PurePosixPath(path).parents} - {"."}
        if path in self._folders or not self._files.isdisjoint({path, *folders}):
            raise Invalid("file_name_duplicate")
        with files.storing():
            try:
                stream = files.create(f"{self._stored}/{path}")
            except FileExistsError as taken:  # two spellings of one name, to this file system
                raise Invalid("file_name_duplicate") from taken
        self.names.append(path)
        self._files.add(path)
        self._folders |= folders
        return UploadedFile(self, stream)

    def settle(self) -> None:
        """Sync the folders to disk, so that a power failure cannot lose files that were already synced."""
        with files.storing():
            files.settle(self._stored)

    def close(self, *, keep: bool) -> None:
        """Release the folder.

        :param keep: it is a job's now; otherwise it is removed.
        """
        try:
            if not keep:
                files.remove(self._stored)
        finally:
            self._leave()


class UploadedFile:
    """A file while it arrives."""

    def __init__(self, upload: Upload, stream: BinaryIO) -> None:
        self.size = 0
        self._upload = upload
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Append. Raises `TryAgain` with the code `storage_full` when the disk takes no more."""
        with files.storing():
            self._stream.write(data)
        self.size += len(data)
        self._upload.add(len(data))

    def close(self) -> None:
        """Finish the file: it is on disk when this returns."""
        with files.storing():
            files.finish(self._stream)

    def abandon(self) -> None:
        """Close a file that will be discarded."""
        files.abandon(self._stream)

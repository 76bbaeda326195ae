"""Spool of audit records on their way to the database, in files under the data folder.

Threat: a process is killed between an answer and its record. So a line is written, by one system call, before the
answer is sent; the operating system keeps it even if the process dies. Each process writes its own segments and locks
the newest; an unlocked segment was abandoned, and any process may take it over.

Each process reserves some disk space and releases it when the disk is full: there is room for some hundred more
records, and time to react.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from threading import Lock

from tenants.audit.entry import Entry
from tenants.storage import disk

log = logging.getLogger("opora.audit")

_SUFFIX = ".jsonl"
_QUARANTINE = "aside.txt"
BALLAST = ".ballast"
"""Suffix of the file that reserves disk space."""
BALLAST_BYTES = 4_000_000
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Spool:
    """The segments of one process. Thread-safe; `append` waits for one other append at most.

    :param folder: shared by all processes of the installation.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._open: tuple[int, Path] | None = None
        self._ballast: tuple[int, Path] | None = None
        self._numbers = iter(range(1, 2**63))
        self._name = f"{os.getpid()}-{token_hex(4)}"

    def append(self, entry: Entry) -> None:
        """Write the entry. Once this returns, a crash of the process cannot lose it. Raises `OSError`."""
        line = entry.line()
        with self._lock:
            try:
                self._write(line)
            except OSError as error:
                if error.errno not in _FULL or not self._drop_ballast():
                    raise
                log.error("the disk is full: records take the room kept for them")
                self._write(line)

    def cut(self) -> Path | None:
        """End the current segment, sync it to disk and return it; None if it is empty."""
        with self._lock:
            if self._open is None:
                return None
            (descriptor, path), self._open = self._open, None
        os.fsync(descriptor)
        os.close(descriptor)
        return path

    def force(self) -> None:
        """Sync written data to the disk."""
        with self._lock:
            descriptor = os.dup(self._open[0]) if self._open else None
        if descriptor is not None:
            os.fsync(descriptor)
            os.close(descriptor)

    def abandoned_segments(self) -> list[Path]:
        """Return the segments of processes that have ended."""
        if not self.folder.is_dir():
            return []
        for ballast in self.folder.glob(f"*{BALLAST}"):
            if _free(ballast):
                ballast.unlink(missing_ok=True)
        return [path for path in sorted(self.folder.glob(f"*{_SUFFIX}")) if _free(path)]

    def quarantine(self, line: bytes) -> None:
        """Keep a line that cannot be recorded, for a person to inspect."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / _QUARANTINE).open("ab") as file:
            file.write(line)

    def erase_quarantined(self, theirs: Callable[[Entry], bool]) -> int:
        """Drop the quarantined entries for which `theirs` is true. Returns their number."""
        path = self.folder / _QUARANTINE
        if not path.exists():
            return 0
        remaining = [line for entry, line in read(path) if entry is None or not theirs(entry)]
        dropped = sum(1 for _ in read(path)) - len(remaining)
        if dropped:
            path.write_bytes(b"".join(remaining))
        return dropped

    def release(self) -> None:
        """Give the room back that was kept for records, when the process ends."""
        with self._lock:
            self._drop_ballast()

    def _write(self, line: bytes) -> None:
        descriptor, path = self._open or self._begin()
        if os.write(descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, f"no room for a record in {path}")

    def _keep_ballast(self) -> None:
        """Reserve the space while there is some. A file system without preallocation gets no reserve."""
        if self._ballast is not None or disk.free(self.folder) < 2 * BALLAST_BYTES:
            return
        path = self.folder / f"{self._name}{BALLAST}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._ballast = descriptor, path
        try:
            os.posix_fallocate(descriptor, 0, BALLAST_BYTES)
        except OSError:
            self._drop_ballast()

    def _drop_ballast(self) -> bool:
        if self._ballast is None:
            return False
        (descriptor, path), self._ballast = self._ballast, None
        path.unlink(missing_ok=True)
        os.close(descriptor)
        return True

    def _begin(self) -> tuple[int, Path]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._keep_ballast()
        path = self.folder / f"{self._name}-{next(self._numbers):08d}{_SUFFIX}"
        unlocked = path.with_suffix(".new")
        descriptor = os.open(unlocked, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Renamed only now, so that no process sees a segment in use without its lock and treats it as abandoned.
        unlocked.rename(path)
        self._open = descriptor, path
        return self._open


def read(path: Path) -> Iterator[tuple[Entry | None, bytes]]:
    """Yield each line of a segment; without an entry if unreadable: the write was cut short, so no answer was sent."""
    with path.open("rb") as file:
        for line in file:
            if line == b"\n":
                continue
            try:
                yield Entry.read(line), line
            except (ValueError, KeyError, TypeError):
                yield None, line


def _free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True

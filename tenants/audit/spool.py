"""Spool of audit records on their way to the database, in files under the data folder.

Threat: a process is killed between an answer and its record. So a line is written, by one system call, before the
answer is sent; the operating system keeps it even if the process dies. Each process writes its own segments and locks
the newest; an unlocked segment was abandoned, and any process may take it over.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from threading import Lock

from tenants.audit.entry import Entry

_SUFFIX = ".jsonl"
_QUARANTINE = "aside.txt"


class Spool:
    """The segments of one process. Thread-safe; `append` waits for one other append at most.

    :param folder: shared by all processes of the installation.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        self._open: tuple[int, Path] | None = None
        self._numbers = iter(range(1, 2**63))
        self._name = f"{os.getpid()}-{token_hex(4)}"

    def append(self, entry: Entry) -> None:
        """Write the entry. Once this returns, a crash of the process cannot lose it. Raises `OSError`."""
        line = entry.line()
        with self._lock:
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

    def _write(self, line: bytes) -> None:
        descriptor, path = self._open or self._begin()
        if os.write(descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, f"no room for a record in {path}")

    def _begin(self) -> tuple[int, Path]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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

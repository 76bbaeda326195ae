"""Files read where they can do no harm: in worker processes that are killed when they take too long.

The threat: a file made to hang its reader, to fill the memory, to crash a native library, or to run code through a
fault in one. So a worker has no environment, writes no file, starts no process, is held to memory and processor time by
the kernel and to wall time by a timer here; what it answers is bounded, is JSON and is checked like any other input.
A worker serves many files, because starting one costs more than reading most; one that was killed, has grown or has
served its share is replaced. `components.ingest.worker` is the other end.
"""

import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock, Timer
from typing import IO
from weakref import finalize

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, StrictInt, StrictStr, ValidationError

from components.ingest.formats.parsed import Markup, Parsed
from tenants.errors import CallerError, Invalid, Malformed, NotFound, TooLarge, TryAgain, UnsupportedMedia

SECONDS = 20.0
MEMORY = 512 * 2**20
LONGEST_ANSWER = 64 * 2**20
"""Bytes of an answer: the five million characters that a document may have take less, however they are spelt."""

_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from components.ingest.worker import main; main()"
_KINDS = {kind.__name__: kind for kind in (CallerError, Invalid, Malformed, NotFound, TooLarge, UnsupportedMedia)}
_SIZE = struct.Struct("!Q")
_LAST_BREATH = 1.0


class Sandbox:
    """Reads files in worker processes. Thread-safe; workers start when needed and end with this object.

    :param workers: how many files are read at once; further callers wait.
    :param seconds: wall time of one file, after which its worker is killed.
    :param memory: bytes of address space of a worker.
    :param files: after so many a worker is replaced.
    """

    def __init__(self, workers: int = 2, seconds: float = SECONDS, memory: int = MEMORY, files: int = 200) -> None:
        self.workers = workers
        self.seconds = seconds
        self.memory = memory
        self.files = files
        self._places = BoundedSemaphore(workers)
        self._lock = Lock()
        self._idle: list[_Worker] = []
        finalize(self, _stop_all, self._idle)

    def read(self, name: str, data: bytes) -> Parsed:
        """A file as one document.

        :param name: the file's name, or the address of a page.
        :raises CallerError: what the format's reader found wrong; `file_too_slow` and `file_too_demanding` when a limit
            was reached, `file_damaged` when the reader did not survive the file.
        :raises TryAgain: `reader_unavailable`: no worker could be started.
        """
        with self._places:
            answer = self._answer(_request(name, data))
        return _parsed(answer)

    def close(self) -> None:
        """Stop the idle workers. Reading stays possible and starts new ones."""
        with self._lock:
            _stop_all(self._idle)

    def _answer(self, request: Sequence[bytes]) -> bytes:
        while True:
            worker = self._taken()
            try:
                answer = worker.ask(request, self.seconds)
            except _Retired:
                worker.stop()
                continue
            except BaseException:
                worker.stop()
                raise
            self._put_back(worker)
            return answer

    def _taken(self) -> "_Worker":
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Worker.started(self.seconds, self.memory)

    def _put_back(self, worker: "_Worker") -> None:
        if worker.served >= self.files:
            worker.stop()
            return
        with self._lock:
            self._idle.append(worker)


class _Retired(Exception):
    """The worker had ended by itself before this file: it was idle for long, or its last file had made it grow."""


@dataclass(slots=True)
class _Worker:
    """One process, used by one thread at a time."""

    process: subprocess.Popen[bytes]
    to: IO[bytes]
    back: IO[bytes]
    served: int = 0

    @classmethod
    def started(cls, seconds: float, memory: int) -> "_Worker":
        """A new worker. It reads files as soon as it is up, so nobody waits for that here."""
        command = [sys.executable, "-I", "-B", "-c", _START, str(_ROOT), str(seconds), str(memory)]
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                # Ctrl+C at a terminal is meant for us; a worker ends with its input.
                start_new_session=True,
            )
        except OSError as failed:
            raise TryAgain("reader_unavailable") from failed
        if process.stdin is None or process.stdout is None:
            raise TryAgain("reader_unavailable")
        return cls(process, process.stdin, process.stdout)

    def ask(self, request: Sequence[bytes], seconds: float) -> bytes:
        """What the worker says of a file, unchecked. When it says nothing, an error says why."""
        self.served += 1
        expired = Event()

        def kill() -> None:
            expired.set()
            self.process.kill()

        killer = Timer(seconds, kill)
        killer.daemon = True
        killer.start()
        try:
            for part in request:
                self.to.write(part)
            self.to.flush()
            (length,) = _SIZE.unpack(_exactly(self.back, _SIZE.size))
            if length > LONGEST_ANSWER:
                raise TooLarge("answer_too_long", limit=LONGEST_ANSWER)
            return _exactly(self.back, length)
        except (OSError, EOFError) as silence:
            raise self._death(seconds, expired=expired.is_set()) from silence
        finally:
            killer.cancel()

    def stop(self) -> None:
        """End the process, whatever it is doing, and leave nothing of it behind."""
        self.process.kill()
        for stream in (self.to, self.back):
            with suppress(OSError):
                stream.close()
        self.process.wait()

    def _death(self, seconds: float, *, expired: bool) -> Exception:
        # It may have closed its end and live on.
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_BREATH)
        self.process.kill()
        status = self.process.wait()
        if expired or status == -signal.SIGXCPU:
            return TooLarge("file_too_slow", seconds=round(seconds))
        if status == 0 and self.served > 1:
            return _Retired()
        return Invalid("file_damaged")


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: StrictStr
    code: StrictStr = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    params: dict[StrictStr, StrictStr | StrictInt | FiniteFloat]

    def error(self) -> CallerError:
        return _KINDS.get(self.kind, Invalid)(self.code, **self.params)


class _Answer(BaseModel):
    """What a worker may say. Nothing of it is trusted: the file that it has read may be speaking."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: StrictStr = ""
    text: StrictStr = ""
    markup: Markup = "markdown"
    meta: dict[StrictStr, JsonValue] = {}
    flags: tuple[StrictStr, ...] = ()
    pages: StrictInt = 0
    error: _Fault | None = None


def _parsed(answer: bytes) -> Parsed:
    try:
        said = _Answer.model_validate_json(answer)
    except ValidationError as garbled:
        raise Invalid("file_damaged") from garbled
    if said.error is not None:
        raise said.error.error()
    return Parsed(said.title, said.text, said.markup, said.meta, said.flags, said.pages)


def _request(name: str, data: bytes) -> tuple[bytes, ...]:
    parts = (name.encode(errors="replace"), data)
    return tuple(piece for part in parts for piece in (_SIZE.pack(len(part)), part))


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _stop_all(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().stop()

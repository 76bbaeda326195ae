"""Reads files in worker processes, where they can do no harm.

The threat: a file or a text made to hang its reader, to fill the memory, to crash a native library, or to run code
through a fault in one, and so to take over the worker that reads it, and through its answers this process or the next
document. A worker has no environment, writes no file, starts no process, and is held to memory and processor time by
the kernel and to wall time by a timer here. An answer is bounded, is JSON of a known form, and is checked like any
other input. `components.ingest.worker` is the other end.

A worker serves many requests, because starting one costs more than most requests do. It is replaced when it was killed,
has grown or has served its share.
"""

import logging
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Timer
from typing import IO, Generic, TypeVar
from weakref import finalize

from pydantic import Field, FiniteFloat, JsonValue, StrictInt, StrictStr, ValidationError

from components.ingest.formats.parsed import FileFlag, Markup, Parsed
from tenants.core import context
from tenants.core.errors import CallerError, Invalid, Malformed, NotFound, TooLarge, TryAgain, UnsupportedMedia
from tenants.core.fair_semaphore import FairSemaphore
from tenants.core.validation import FrozenModel

SECONDS = 18.0
"""Time limit of a file, so that a job over one file, with all transfers, ends within 20 seconds."""

MEMORY = 512 * 10**6
"""Bytes of address space of a worker."""

MAX_ANSWER_BYTES = 64 * 2**20
"""Maximum size of an answer. A document's five million characters take less in any encoding."""

_LOG = logging.getLogger("opora.ingest")
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from components.ingest.worker import main; main()"
_SIZE = struct.Struct("!Q")
_LAST_BREATH = 1.0
_KINDS = {kind.__name__: kind for kind in (CallerError, Invalid, Malformed, NotFound, TooLarge, UnsupportedMedia)}


class Form(FrozenModel):
    """Part of an answer: its permitted fields, and no others."""


_Result = TypeVar("_Result")


class _Fault(Form):
    kind: StrictStr
    code: StrictStr = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    params: dict[StrictStr, StrictStr | StrictInt | FiniteFloat]


class Answer(Form, Generic[_Result]):
    """Answer of a worker: a result or an error."""

    result: _Result | None = None
    error: _Fault | None = None
    cause: StrictStr = Field("", max_length=500, pattern=r"^[\w.:> ]*$")
    """Location of a reader's failure, for the log, so it must not contain text of the file."""


class _ParsedForm(Form):
    title: StrictStr = ""
    text: StrictStr = ""
    markup: Markup = "markdown"
    meta: dict[StrictStr, JsonValue] = Field(default_factory=dict)
    flags: tuple[FileFlag, ...] = ()
    pages: StrictInt = 0


class Sandbox:
    """Worker processes for the verbs of `components.ingest.worker`. Thread-safe.

    Workers start when needed and end with this object.

    :param workers: how many requests are answered at once; further callers wait, and tenants take turns.
    :param seconds: wall time of one request, after which its worker is killed.
    :param requests: after so many a worker is replaced.
    """

    def __init__(self, workers: int = 2, seconds: float = SECONDS, requests: int = 200) -> None:
        self.program = _PROGRAM
        self.seconds = seconds
        self.requests = requests
        self._places = FairSemaphore(workers)
        self._lock = Lock()
        self._idle: list[_Worker] = []
        finalize(self, _stop_all, self._idle)

    def read(self, name: str, data: bytes) -> Parsed:
        """Read a file as one document.

        :param name: the file's name, or the address of a page.
        :raises CallerError: the error of the format's reader, and those of `call`.
        :raises TryAgain: `reader_unavailable`.
        """
        form = self.call("read", name, data, Answer[_ParsedForm])
        return Parsed(form.title, form.text, form.markup, form.meta, form.flags, form.pages)

    def call(self, verb: str, name: str, data: bytes, form: type[Answer[_Result]]) -> _Result:
        """Return the checked result of a request.

        :raises CallerError: the worker's own error; `file_too_slow` and `file_too_demanding` when a limit was reached,
            `file_damaged` when the worker died or its answer has another form.
        :raises TryAgain: `reader_unavailable`: no worker could be started.
        """
        with Invalid("file_damaged").instead_of(ValidationError):
            answer = form.model_validate_json(self._ask(f"{verb} {name}", data))
        if answer.cause:
            _LOG.warning("a reader failed: %s", answer.cause)
        if answer.error is not None:
            fault = answer.error
            raise _KINDS.get(fault.kind, Invalid)(fault.code, **fault.params)
        if answer.result is None:
            raise Invalid("file_damaged")
        return answer.result

    def close(self) -> None:
        """Stop the idle workers. Further requests start new ones."""
        with self._lock:
            _stop_all(self._idle)

    def _ask(self, name: str, data: bytes) -> bytes:
        """Return a worker's answer, unchecked. Raises `CallerError` when it is missing."""
        with self._places.permit(context.holder()):
            while True:
                with self._lock:
                    worker = self._idle.pop() if self._idle else None
                worker = worker or _Worker(self.program, self.seconds)
                try:
                    answer = worker.ask(name, data, self.seconds)
                except _Retired:
                    worker.stop()
                    continue
                except BaseException:
                    worker.stop()
                    raise
                if worker.served >= self.requests:
                    worker.stop()
                else:
                    with self._lock:
                        self._idle.append(worker)
                return answer


class _Retired(Exception):
    """The worker had ended by itself before: it was idle for long, or its last request had made it grow."""


class _Worker:
    """A process that serves a single thread at a time. Requests wait in its pipe until it is up."""

    def __init__(self, program: str, seconds: float) -> None:
        self.served = 0
        with TryAgain("reader_unavailable").instead_of(OSError):
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                [sys.executable, "-I", "-B", "-c", program, str(_ROOT), str(seconds), str(MEMORY)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # Empty but for this. A thread for each core would take more address space than a worker may have.
                env={"OPENBLAS_NUM_THREADS": "1"},
                # Ctrl+C at a terminal is meant for us; a worker ends with its input.
                start_new_session=True,
            )

    def ask(self, name: str, data: bytes, seconds: float) -> bytes:
        """Return the worker's answer, unchecked. Raise an error when it is missing."""
        self.served += 1
        expired = Event()

        def kill() -> None:
            expired.set()
            self._process.kill()

        killer = Timer(seconds, kill)
        killer.daemon = True
        killer.start()
        to, back = self._pipes()
        try:
            for part in (name.encode(errors="replace"), data):
                to.write(_SIZE.pack(len(part)))
                to.write(part)
            to.flush()
            (length,) = _SIZE.unpack(_exactly(back, _SIZE.size))
            if length > MAX_ANSWER_BYTES:
                raise TooLarge("answer_too_long", limit=MAX_ANSWER_BYTES)
            return _exactly(back, length)
        except (OSError, EOFError) as silence:
            raise self._exit_error(seconds, expired=expired.is_set()) from silence
        finally:
            killer.cancel()

    def stop(self) -> None:
        """Kill the process immediately and release its resources."""
        self._process.kill()
        for stream in self._pipes():
            with suppress(OSError):
                stream.close()
        self._process.wait()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process.stdin is None or self._process.stdout is None:
            raise TryAgain("reader_unavailable")
        return self._process.stdin, self._process.stdout

    def _exit_error(self, seconds: float, *, expired: bool) -> Exception:
        # It may have closed its end and live on.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_BREATH)
        self._process.kill()
        status = self._process.wait()
        if expired or status == -signal.SIGXCPU:
            return TooLarge("file_too_slow", seconds=round(seconds))
        return _Retired() if status == 0 and self.served > 1 else Invalid("file_damaged")


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _stop_all(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().stop()

"""Worker processes that are killed when they take too long, and replaced when they grow.

A worker has no environment, writes no file, starts no process, and is held to memory and processor time by the kernel
and to wall time by a timer here. It serves many requests, because starting one costs more than most requests do; one
that was killed, has grown or has served its share is replaced. `components.ingest.worker` is the other end.
"""

import signal
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock, Timer
from typing import IO
from weakref import finalize

from tenants.core.errors import Invalid, TooLarge, TryAgain

MAX_ANSWER_BYTES = 64 * 2**20
"""Maximum size of an answer. A document's five million characters take less in any encoding."""

_ROOT = Path(__file__).resolve().parents[2]
_SIZE = struct.Struct("!Q")
_LAST_BREATH = 1.0


def program_of(module: str) -> str:
    """Return the program of workers that run the `main` of a module of this project."""
    return f"import sys; sys.path.insert(0, sys.argv[1]); from {module} import main; main()"


class Processes:
    """Answers requests in worker processes. Thread-safe; workers start when needed and end with this object.

    :param program: what a worker runs (`program_of`).
    :param workers: how many requests are answered at once; further callers wait.
    :param seconds: wall time of one request, after which its worker is killed.
    :param memory: bytes of address space of a worker.
    :param requests: after so many a worker is replaced.
    """

    def __init__(self, program: str, *, workers: int, seconds: float, memory: int, requests: int) -> None:
        self.program = program
        self.workers = workers
        self.seconds = seconds
        self.memory = memory
        self.requests = requests
        self._places = BoundedSemaphore(workers)
        self._lock = Lock()
        self._idle: list[_Worker] = []
        finalize(self, _stop_all, self._idle)

    def ask(self, name: str, data: bytes) -> bytes:
        """Return a worker's answer, unchecked.

        :raises CallerError: `file_too_slow` when the time was over, `file_damaged` when the worker did not survive.
        :raises TryAgain: `reader_unavailable`: no worker could be started.
        """
        with self._places:
            while True:
                with self._lock:
                    worker = self._idle.pop() if self._idle else None
                worker = worker or _Worker(self.program, self.seconds, self.memory)
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

    def close(self) -> None:
        """Stop the idle workers. Further requests start new ones."""
        with self._lock:
            _stop_all(self._idle)


class _Retired(Exception):
    """The worker had ended by itself before: it was idle for long, or its last request had made it grow."""


class _Worker:
    """A process that serves a single thread at a time. Requests wait in its pipe until it is up."""

    def __init__(self, program: str, seconds: float, memory: int) -> None:
        self.served = 0
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                [sys.executable, "-I", "-B", "-c", program, str(_ROOT), str(seconds), str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # Empty but for this. A thread for each core would take more address space than a worker may have.
                env={"OPENBLAS_NUM_THREADS": "1"},
                # Ctrl+C at a terminal is meant for us; a worker ends with its input.
                start_new_session=True,
            )
        except OSError as failed:
            raise TryAgain("reader_unavailable") from failed

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

"""Run a real `opora serve` in a separate process, and read its resource usage from the operating system."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread

from settings import ROOT, get_settings

START_SECONDS = 60
STOP_SECONDS = 30
PROBE_SECONDS = 0.05


class NotStarted(Exception):
    """The service did not get ready; its own words are on standard error."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running service."""

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """Return the CPU time used by the process so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, kind: str) -> float:
        """Return the resident memory in MB (10^6 bytes): `VmRSS` now, `VmHWM` at its peak."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise KeyError(kind)


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Served]:
    """Serve a data folder on a free local port, question limits off, until the block ends.

    :param settings: further environment variables of the service.
    :raises NotStarted: it exits, or is not ready in time.
    """
    port = free_port()
    environment = os.environ | {
        "OPORA_DATA_DIR": str(folder),
        "OPORA_MODELS_DIR": str(get_settings().models),
        "OPORA_FETCH_MODELS": "false",
        "OPORA_RATE_LIMIT_PER_MINUTE": "0",
        "OPORA_RATE_LIMIT_PER_DAY": "0",
        "OPORA_LOG_LEVEL": "WARNING",
        **settings,
    }
    command = [sys.executable, "-m", "cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
    try:
        _await_ready(process, port)
        yield Served(port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except (HTTPException, OSError):
            time.sleep(0.1)
        finally:
            connection.close()
    raise NotStarted


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, directly or not; an empty list if it has ended."""
    found: list[int] = []
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, path.read_text(encoding="ascii").split()):
                found += [child, *descendants(child)]
    return found


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its descendants in MB (10^6 bytes)."""
    pages = 0
    for one in (pid, *descendants(pid)):
        with suppress(OSError):
            pages += int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def watched(port: int) -> Iterator[list[float]]:
    """Ask `/healthz` again and again in this block. Filled meanwhile: the milliseconds of each answer."""
    spent: list[float] = []
    stop = Event()

    def watch() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        while not stop.wait(PROBE_SECONDS):
            started_at = time.perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            spent.append((time.perf_counter() - started_at) * 1_000)
        connection.close()

    thread = Thread(target=watch, name="health")
    thread.start()
    try:
        yield spent
    finally:
        stop.set()
        thread.join()

"""A service of Opora in its own process: start it, get tokens and clients for it, read what it uses of the machine."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import httpx

from evaluation.benchmarks.load import Client
from settings import ROOT, get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.storage import bus, database
from tenants.work import locks

START_SECONDS = 180
STOP_SECONDS = 30
PROBE_SECONDS = 0.05
_TOKEN_SECONDS = 36_000


class NotStarted(Exception):
    """The service did not get ready; its own words are on standard error."""


class Process:
    """A process of the command line, which can be ended and started again."""

    def __init__(self, *command: str, **variables: str) -> None:
        self._command = [sys.executable, "-m", "cli", *command]
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the id of the running process; 0 while it does not run."""
        return self._process.pid if self._process else 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, **variables: str) -> None:
        environment = os.environ | self._variables | variables
        self._process = subprocess.Popen(self._command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


@dataclass(frozen=True, slots=True)
class Served:
    port: int
    pid: int

    def client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=120)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, kind: str) -> float:
        """Return the resident memory in MB (10^6 bytes): `VmRSS` now, `VmHWM` at its peak."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise KeyError(kind)


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[Served]:
    """Serve a data folder on a free local port, question limits off, until the block ends.

    :raises NotStarted: it exits, or is not ready in time.
    """
    port = free_port()
    defaults = {
        "OPORA_DATA_DIR": str(folder),
        "OPORA_MODELS_DIR": str(get_settings().models),
        "OPORA_FETCH_MODELS": "false",
        "OPORA_RATE_LIMIT_PER_MINUTE": "0",
        "OPORA_RATE_LIMIT_PER_DAY": "0",
        "OPORA_LOG_LEVEL": "WARNING",
    }
    process = Process("serve", "--host", "127.0.0.1", "--port", str(port), **{**defaults, **variables})
    process.start()
    try:
        await_ready(process, port)
        yield Served(port, process.pid)
    finally:
        process.end()


def await_ready(process: Process, port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    with closing(Client(port)) as client:
        while time.monotonic() < deadline and process.is_running:
            if client.exchange("GET", "/readyz").status == 200:
                return
            time.sleep(0.1)
    raise NotStarted


@contextmanager
def installation(folder: Path, **variables: str) -> Iterator[None]:
    """Make this process part of the installation of a data folder in this block, with further settings."""
    before = dict(os.environ)
    os.environ |= {"OPORA_MODELS_DIR": str(get_settings().models), "OPORA_DATA_DIR": str(folder), **variables}
    get_settings.cache_clear()
    try:
        yield
    finally:
        close_stores()
        os.environ.clear()
        os.environ |= before
        get_settings.cache_clear()


def close_stores() -> None:
    """Close everything that this process has open, so that a service can take over."""
    for store in (bus, locks, index, database):
        store.close_all()


def token_for(tenant_id: str, *scopes: str, subject: str = "bench") -> str:
    """Return a token of the tenant, by the keys of this process's installation; with the scope `ask` by default."""
    settings = get_settings()
    return issue(settings, tenant_id, scopes=scopes or ("ask",), subject=subject, ttl_seconds=_TOKEN_SECONDS)


def opora(*arguments: str) -> None:
    """Run a command to its end, in the installation of this process."""
    command = [sys.executable, "-m", "cli", *arguments]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)  # noqa: S603


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, path.read_text(encoding="ascii").split()):
                found += [child, *_descendants(child)]
    return found


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its descendants in MB (10^6 bytes)."""
    pages = 0
    for process in (pid, *_descendants(pid)):
        with suppress(OSError):
            pages += int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def watched(port: int) -> Iterator[list[float]]:
    """Ask `/healthz` again and again in this block. Filled meanwhile: the milliseconds of each answer."""
    spent: list[float] = []
    with closing(Client(port)) as client:

        def ask() -> None:
            spent.append(client.exchange("GET", "/healthz").milliseconds)

        with repeating(ask, PROBE_SECONDS):
            yield spent


@contextmanager
def repeating(work: Callable[[], None], seconds: float) -> Iterator[None]:
    """Do `work` in a background thread while the block runs, with so many seconds between."""
    stop = Event()

    def repeat() -> None:
        while not stop.wait(seconds):
            work()

    thread = Thread(target=repeat, name="repeating")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()

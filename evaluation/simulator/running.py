"""Running a simulator in a thread of this process, or in a separate process."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Thread

from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Call, Simulator
from settings import ROOT

_STOP_SECONDS = 10


@contextmanager
def simulator_thread(knobs: Knobs | None = None) -> Iterator[tuple[Simulator, str]]:
    """Run a simulator in a thread until the block ends; yield it with its URL."""
    simulator = Simulator(knobs)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(simulator.serve("127.0.0.1", 0))
    port = server.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever, name="simulator", daemon=True)
    thread.start()
    try:
        yield simulator, f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(simulator.close(server), loop).result(_STOP_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_SECONDS)
        loop.close()


@dataclass(frozen=True, slots=True)
class RemoteSimulator:
    """A simulator in another process."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self.port}"

    def set_knobs(self, knobs: Knobs) -> None:
        """Set all knobs, and clear the log of calls."""
        self._request("POST", knobs.model_dump_json())

    def calls(self) -> list[Call]:
        """Return the calls made since the knobs were last set."""
        calls = self._request("GET", "{}")["calls"]
        return [Call(**call) for call in calls] if isinstance(calls, list) else []

    def _request(self, method: str, body: str) -> dict[str, object]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_STOP_SECONDS)
        try:
            connection.request(method, "/simulator", body)
            content = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return dict(content)


@contextmanager
def simulator_process(knobs: Knobs | None = None) -> Iterator[RemoteSimulator]:
    """Run a simulator in a separate process until the block ends."""
    command = [sys.executable, "-m", "evaluation.simulator", "--port", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        line = process.stdout.readline() if process.stdout else ""
        remote = RemoteSimulator(int(line.rpartition(":")[2]), process.pid)
        remote.set_knobs(knobs or Knobs())
        yield remote
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)
        if process.stdout:
            process.stdout.close()

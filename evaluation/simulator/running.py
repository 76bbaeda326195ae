"""Running a simulator in a thread of this process, or in a separate process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import httpx

from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Call, Simulator, listening
from settings import ROOT

_STOP_SECONDS = 10


@contextmanager
def simulator_thread(knobs: Knobs | None = None) -> Iterator[tuple[Simulator, str]]:
    """Run a simulator in a thread until the block ends; yield it with its URL."""
    simulator = Simulator(knobs)
    server = simulator.server()
    with listening("127.0.0.1", 0) as bound:
        thread = Thread(target=server.run, args=([bound],), name="simulator", daemon=True)
        thread.start()
        try:
            yield simulator, f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(_STOP_SECONDS)


@dataclass(frozen=True, slots=True)
class RemoteSimulator:
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def set_knobs(self, knobs: Knobs) -> None:
        httpx.post(f"{self.url}/simulator", content=knobs.model_dump_json()).raise_for_status()

    def calls(self) -> list[Call]:
        state = httpx.get(f"{self.url}/simulator").raise_for_status().json()
        return [Call(**call) for call in state["calls"]]


@contextmanager
def simulator_process(knobs: Knobs | None = None) -> Iterator[RemoteSimulator]:
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

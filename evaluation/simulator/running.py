"""Running a simulator in a thread of this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from evaluation.simulator import wire
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.server import Simulator

_STOP_SECONDS = 10


@contextmanager
def simulator_thread(knobs: Knobs | None = None) -> Iterator[tuple[Simulator, str]]:
    """Run a simulator in a thread until the block ends; yield it with its URL."""
    simulator = Simulator(knobs)
    server = wire.server(simulator.handle)
    with wire.listening("127.0.0.1", 0) as listening:
        thread = Thread(target=server.run, args=([listening],), name="simulator", daemon=True)
        thread.start()
        try:
            yield simulator, f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(_STOP_SECONDS)

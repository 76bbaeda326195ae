"""Whether the service stays well while it works."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Event, Thread
from time import perf_counter

_PAUSE_SECONDS = 0.05


@contextmanager
def watched(port: int) -> Iterator[list[float]]:
    """Ask `/healthz` again and again in this block. Filled meanwhile: the milliseconds of each answer."""
    spent: list[float] = []
    stop = Event()

    def watch() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        while not stop.wait(_PAUSE_SECONDS):
            started = perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            spent.append((perf_counter() - started) * 1_000)
        connection.close()

    thread = Thread(target=watch, name="health")
    thread.start()
    try:
        yield spent
    finally:
        stop.set()
        thread.join()

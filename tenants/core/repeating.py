"""Work that a process repeats in the background."""

from collections.abc import Callable
from threading import Event, Thread


class Rest(float):
    """Seconds to wait after a failure: a wake does not cut them short, but makes the step repeat once more."""


class Repeating:
    """A daemon thread that repeats a step until it is closed: after the pause that the step returns, or once woken.

    For work that neither the event loop nor the queue may delay, such as renewing leases. A step must not raise.

    :param name: of the thread.
    :param step: does the work; returns the most seconds until it is repeated, or a `Rest`.
    :param pace: seconds between a wake and the step, so that it does more at once.
    """

    def __init__(self, name: str, step: Callable[[], float], pace: float = 0.0) -> None:
        self._step, self._pace = step, pace
        self._woken, self._closing = Event(), Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Do the first step now, and go on."""
        self._thread.start()

    def wake(self) -> None:
        """Repeat the step soon. Takes a microsecond."""
        self._woken.set()

    def close(self, patience: float) -> bool:
        """Do the last step. Returns False if that has not ended within the patience."""
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closing.is_set()
            pause = self._step()
            if isinstance(pause, Rest):
                self._closing.wait(pause)
            elif not is_last:
                self._woken.wait(pause)
                self._closing.wait(self._pace)
                self._woken.clear()

"""A provider that keeps failing is left alone for a while, and never gets more calls at once than it can take."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock
from time import monotonic


@dataclass(slots=True)
class Breaker:
    """Opens after `failures` failures in a row; after `pause` seconds one call may try, and closes it when it works.

    Thread-safe.
    """

    failures: int
    pause: float
    clock: Callable[[], float] = monotonic
    _failed: int = 0
    _opened: float | None = None
    _trying: bool = False
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_open(self) -> bool:
        """Whether calls are being turned away, all but one that tries."""
        return self._opened is not None

    def admit(self) -> bool:
        """Whether a call may be made now. Who is let in tells how it went."""
        with self._lock:
            if self._opened is None:
                return True
            if self._trying or self.clock() - self._opened < self.pause:
                return False
            self._trying = True
            return True

    def worked(self) -> None:
        """A call went well."""
        with self._lock:
            self._failed, self._opened, self._trying = 0, None, False

    def failed(self) -> None:
        """A call failed, and it was the provider's doing."""
        with self._lock:
            self._failed += 1
            if self._trying or self._failed >= self.failures:
                self._opened = self.clock()
            self._trying = False

    def unsettled(self) -> None:
        """A call ended without telling anything about the provider."""
        with self._lock:
            self._trying = False


class Line:
    """What all callers of one model share in this process, however many components name it."""

    def __init__(self, failures: int, pause: float, concurrent: int) -> None:
        self.breaker = Breaker(failures, pause)
        self._seats = BoundedSemaphore(concurrent)

    def take_seat(self, patience: float) -> bool:
        """Wait for one of the places for calls, `patience` seconds at most."""
        return self._seats.acquire(timeout=max(0.0, patience))

    def leave_seat(self) -> None:
        """Give the place back, from whatever thread."""
        self._seats.release()


_LINES: dict[tuple[str, ...], Line] = {}
_LOCK = Lock()


def line(key: tuple[str, ...], *, failures: int, pause: float, concurrent: int) -> Line:
    """The line to a model. Its bounds are those that it was first named with."""
    with _LOCK:
        if key not in _LINES:
            _LINES[key] = Line(failures, pause, concurrent)
        return _LINES[key]

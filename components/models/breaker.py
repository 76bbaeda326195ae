"""Circuit breakers and seats: failing providers are skipped for a while, and none gets more calls than it can take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock
from time import monotonic

from components.models.calls import NOT_ATTEMPTED, CallOutcome
from components.models.failures import ModelFailed, outcome_of
from components.models.pace import Pace


@dataclass(slots=True)
class Breaker:
    """Opens after `failures` consecutive failures. After `pause` seconds one call is admitted as a trial: its success
    closes the breaker, its failure starts another pause.

    Thread-safe.
    """

    failures: int
    pause: float
    clock: Callable[[], float] = monotonic
    _failed: int = 0
    _opened_at: float | None = None
    _trial: "Permit | None" = None
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_open(self) -> bool:
        """Whether calls are refused, except for a trial."""
        return self._opened_at is not None

    @contextmanager
    def call(self) -> Iterator["Permit"]:
        """Surround one call of the provider. The end of the block settles the permit, unless the block has done so.

        :raises ModelFailed: `open_circuit`.
        """
        permit = self._admit()
        if permit is None:
            raise ModelFailed("open_circuit")
        outcome: CallOutcome = "stopped"
        try:
            yield permit
            outcome = "ok"
        except Exception as fault:
            outcome = outcome_of(fault)
            raise
        finally:
            permit.record(outcome)

    def _admit(self) -> "Permit | None":
        with self._lock:
            permit = Permit(self)
            if self._opened_at is None:
                return permit
            if self._trial is not None or self.clock() - self._opened_at < self.pause:
                return None
            self._trial = permit
            return permit

    def _settle(self, permit: "Permit", *, success: bool | None) -> None:
        """Take the first result of a permit. While the breaker is open, only the result of its trial counts."""
        with self._lock:
            if permit.settled:
                return
            permit.settled = True
            if self._opened_at is not None:
                if permit is not self._trial:
                    return
                self._trial = None
            if success:
                self._failed, self._opened_at = 0, None
            elif success is False:
                self._failed += 1
                if self._opened_at is not None or self._failed >= self.failures:
                    self._opened_at = self.clock()


class Permit:
    """One call admitted by a breaker. Only its first result counts, whenever others arrive."""

    def __init__(self, breaker: Breaker) -> None:
        self.settled = False
        self._breaker = breaker

    def record(self, outcome: CallOutcome) -> None:
        """Settle by the outcome of a call."""
        if outcome == "ok":
            self.record_success()
        elif outcome in NOT_ATTEMPTED:
            self.release_trial()
        else:
            self.record_failure()

    def record_success(self) -> None:
        """The provider works."""
        self._breaker._settle(self, success=True)

    def record_failure(self) -> None:
        """The provider failed."""
        self._breaker._settle(self, success=False)

    def release_trial(self) -> None:
        """The call was inconclusive: admit another one as the trial."""
        self._breaker._settle(self, success=None)


class Upstream:
    """A provider shared by all its callers in this process: one breaker, one pace, seats for `concurrent` calls."""

    def __init__(self, failures: int, pause: float, concurrent: int) -> None:
        self.breaker = Breaker(failures, pause)
        self.pace = Pace()
        self._seats = BoundedSemaphore(concurrent)

    def acquire(self, patience: float) -> bool:
        """Wait for a seat, `patience` seconds at most."""
        return self._seats.acquire(timeout=max(0.0, patience))

    def release(self) -> None:
        """Release the seat, from any thread."""
        self._seats.release()


_UPSTREAMS: dict[tuple[str, ...], Upstream] = {}
_LOCK = Lock()


def open_now() -> int:
    """How many providers are left alone at the moment."""
    with _LOCK:
        return sum(one.breaker.is_open for one in _UPSTREAMS.values())


def upstream(key: tuple[str, ...], *, failures: int, pause: float, concurrent: int) -> Upstream:
    """The provider of this key. Its bounds are those of the first call with this key."""
    with _LOCK:
        if key not in _UPSTREAMS:
            _UPSTREAMS[key] = Upstream(failures, pause, concurrent)
        return _UPSTREAMS[key]

"""Semaphore whose permits tenants take in turns, and within a tenant its visitors.

Threat: a tenant asks sixty questions at once, or a visitor three that take long. First come, first served, each model
call of another's question waits behind them.

`Seats` does not fit: it runs work in pools that a process waits for when it ends, and a call that hangs is abandoned.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Event, Lock
from time import monotonic
from typing import TypeAlias

_POLL_SECONDS = 0.25

_SHARE = 3
"""A tenant has at most this many times the free capacity: alone, three quarters of the total."""

Holder: TypeAlias = tuple[str, str]
"""A tenant and a visitor of its sites; empty for work that belongs to none."""


def may_take_more(own: int, free: int, share: int = _SHARE) -> bool:
    """Whether a tenant with `own` units of a bounded resource may take another while `free` are left.

    :param share: the most times the free capacity that it may have.

    The rule is that of dynamic thresholds in switches with a shared buffer (Choudhury and Hahne, 1998).
    """
    return own < share * free


class FairSemaphore:
    """A free permit goes to the tenant that has the fewest, and to its visitor that has the fewest. Thread-safe.

    Once a second tenant has used it, each may take three quarters of the permits at most, if there are four or more.
    So the next call of a neighbour starts at once, instead of when another call has ended. Until then, a tenant may
    take all permits: an installation for one tenant, or a tool, which has one, would not use the rest. A visitor may
    always take half; back ends, which ask for many customers, are not limited.

    :param permits: number of calls at once.
    """

    def __init__(self, permits: int) -> None:
        self._free = permits
        self._half = (permits + 1) // 2
        self._of_tenant: Counter[str] = Counter()
        self._of_holder: Counter[Holder] = Counter()
        self._lines: dict[Holder, deque[Event]] = {}
        self._tenants: set[str] = set()
        self._lock = Lock()

    def acquire(self, holder: Holder, patience: Callable[[], float] | None = None) -> bool:
        """Take a permit; return False if there was none in time.

        :param patience: how many seconds the caller still waits. Called repeatedly. None: it does not wait.
        """
        granted = Event()
        with self._lock:
            if holder[0]:
                self._tenants.add(holder[0])
            self._lines.setdefault(holder, deque()).append(granted)
            self._fill()
        try:
            while not granted.is_set():
                seconds = patience() if patience is not None else 0.0
                if seconds <= 0:
                    return not self._gave_up(holder, granted)
                granted.wait(min(seconds, _POLL_SECONDS))
        except BaseException:
            if not self._gave_up(holder, granted):
                self.release(holder)
            raise
        return True

    @contextmanager
    def permit(
        self, holder: Holder, seconds: float = inf, refusal: Callable[[], Exception] = TimeoutError
    ) -> Iterator[None]:
        """Run the block with a permit.

        :param seconds: how long to wait for it.
        :param refusal: makes the error that is raised if there was none in time.
        """
        latest = monotonic() + seconds
        if not self.acquire(holder, lambda: latest - monotonic()):
            raise refusal()
        try:
            yield
        finally:
            self.release(holder)

    def release(self, holder: Holder) -> None:
        """Return a permit of this holder, from any thread."""
        with self._lock:
            self._free += 1
            self._of_tenant[holder[0]] -= 1
            self._of_holder[holder] -= 1
            self._of_tenant += Counter()  # drops those that have none
            self._of_holder += Counter()
            self._fill()

    def _gave_up(self, holder: Holder, granted: Event) -> bool:
        """Leave the line; return False if the permit has been granted meanwhile."""
        with self._lock:
            if granted.is_set():
                return False
            line = self._lines[holder]
            line.remove(granted)
            if not line:
                del self._lines[holder]
            return True

    def _fill(self) -> None:
        """Grant the free permits. Called with the lock."""
        while (holder := self._next()) is not None:
            line = self._lines.pop(holder)
            self._free -= 1
            self._of_tenant[holder[0]] += 1
            self._of_holder[holder] += 1
            line.popleft().set()
            if line:
                self._lines[holder] = line

    def _next(self) -> Holder | None:
        # The first of several with equally many permits has waited longest.
        return min(filter(self._may_take, self._lines), key=self._permits_of, default=None)

    def _permits_of(self, holder: Holder) -> tuple[int, int]:
        tenant_id, visitor = holder
        return self._of_tenant[tenant_id], self._of_holder[holder] if visitor else 0

    def _may_take(self, holder: Holder) -> bool:
        of_tenant, of_visitor = self._permits_of(holder)
        if of_visitor >= self._half:
            return False
        return may_take_more(of_tenant, self._free) if len(self._tenants) > 1 else self._free > 0

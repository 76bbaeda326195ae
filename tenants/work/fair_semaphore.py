"""Semaphore whose permits tenants take in turns.

Threat: a tenant asks sixty questions at once. First come, first served, each model call of another tenant's question
waits behind them.

`Seats` does not fit: it runs work in pools that a process waits for when it ends, and a call that hangs is abandoned.
"""

from collections import Counter, deque
from collections.abc import Callable
from threading import Event, Lock

from tenants.work.seats import may_take_more

_POLL_SECONDS = 0.25


class FairSemaphore:
    """A free permit goes to the tenant that has the fewest. Thread-safe.

    Once a second tenant has used it, each may take three quarters of the permits at most, if there are four or more.
    So the next call of a neighbour starts at once, instead of when another call has ended. Until then, a tenant may
    take all permits: an installation for one tenant, or a tool, which has one, would not use the rest.

    :param permits: number of calls at once.
    """

    def __init__(self, permits: int) -> None:
        self._free = permits
        self._taken: Counter[str] = Counter()
        self._lines: dict[str, deque[Event]] = {}
        self._tenants: set[str] = set()
        self._lock = Lock()

    def acquire(self, tenant_id: str, patience: Callable[[], float] | None = None) -> bool:
        """Take a permit; return False if there was none in time.

        :param tenant_id: empty for work that belongs to no tenant.
        :param patience: how many seconds the caller still waits. Called repeatedly. None: it does not wait.
        """
        granted = Event()
        with self._lock:
            if tenant_id:
                self._tenants.add(tenant_id)
            self._lines.setdefault(tenant_id, deque()).append(granted)
            self._fill()
        while not granted.is_set():
            seconds = patience() if patience is not None else 0.0
            if seconds <= 0:
                return not self._gave_up(tenant_id, granted)
            granted.wait(min(seconds, _POLL_SECONDS))
        return True

    def release(self, tenant_id: str) -> None:
        """Return a permit of this tenant, from any thread."""
        with self._lock:
            self._free += 1
            self._taken[tenant_id] -= 1
            self._taken += Counter()  # drops the tenants that have none
            self._fill()

    def _gave_up(self, tenant_id: str, granted: Event) -> bool:
        """Leave the line; return False if the permit has been granted meanwhile."""
        with self._lock:
            if granted.is_set():
                return False
            line = self._lines[tenant_id]
            line.remove(granted)
            if not line:
                del self._lines[tenant_id]
            return True

    def _fill(self) -> None:
        """Grant the free permits. Called with the lock."""
        while (tenant_id := self._next()) is not None:
            line = self._lines.pop(tenant_id)
            self._free -= 1
            self._taken[tenant_id] += 1
            line.popleft().set()
            if line:
                self._lines[tenant_id] = line

    def _next(self) -> str | None:
        able = (tenant_id for tenant_id in self._lines if self._may_take(self._taken[tenant_id]))
        # The first of several with equally many permits has waited longest.
        return min(able, key=self._taken.__getitem__, default=None)

    def _may_take(self, own: int) -> bool:
        return may_take_more(own, self._free) if len(self._tenants) > 1 else self._free > 0

"""How often one person may ask. Kept in this process: several replicas allow several times as much."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from threading import Lock
from time import monotonic

from settings import Settings
from tenants import context, policy
from tenants.errors import RateLimited

_MINUTE = 60.0
_DAY = 86_400.0
_SWEEP_EVERY = 1_024


@dataclass(slots=True)
class _Usage:
    """One person's recent calls: the moments of those in the last minute, and a count since the day began for them."""

    minute: deque[float] = field(default_factory=deque)
    day_began: float = float("-inf")
    day_calls: int = 0


class RateLimiter:
    """Bounds calls per tenant and subject: never more than the limit within any 60 seconds, nor in a day.

    A person's day begins with their first call and lasts 24 hours. The tenant's policy overrides the settings; 0 means
    no limit. A refused call does not count.

    :param settings: the installation's limits.
    :param clock: seconds from any start, never going back.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._usage: dict[tuple[str, str], _Usage] = {}
        self._calls = 0

    def admit(self) -> None:
        """Count one call of the tenant and subject in context. Raises `RateLimited` with the seconds to wait."""
        caller = context.current()
        per_minute, per_day = self._limits()
        if not per_minute and not per_day:
            return
        now = self._clock()
        with self._lock:
            self._sweep(now)
            usage = self._usage.setdefault((caller.tenant_id, caller.subject), _Usage())
            _roll(usage, now)
            waits = []
            if per_day and usage.day_calls >= per_day:
                waits.append(usage.day_began + _DAY - now)
            if per_minute and len(usage.minute) >= per_minute:
                waits.append(usage.minute[-per_minute] + _MINUTE - now)
            if waits:
                raise RateLimited(max(1, ceil(max(waits))))
            usage.minute.append(now)
            usage.day_calls += 1

    def _limits(self) -> tuple[int, int]:
        chosen = policy.current()
        minute, day = chosen.rate_limit_per_minute, chosen.rate_limit_per_day
        return (
            self._settings.rate_limit_per_minute if minute is None else minute,
            self._settings.rate_limit_per_day if day is None else day,
        )

    def _sweep(self, now: float) -> None:
        """Forget people whose day is over, every so often, so that memory follows the people of a day."""
        self._calls += 1
        if self._calls % _SWEEP_EVERY == 0:
            over = [key for key, usage in self._usage.items() if now - usage.day_began >= _DAY]
            for key in over:
                del self._usage[key]


def _roll(usage: _Usage, now: float) -> None:
    while usage.minute and now - usage.minute[0] >= _MINUTE:
        usage.minute.popleft()
    if now - usage.day_began >= _DAY:
        usage.day_began, usage.day_calls = now, 0

"""Circuit breakers and seats, shared by all callers of a provider in this process.

pybreaker 1.4 does not fit: its `call` holds the breaker's lock while the provider works, which admits one call at a
time, and it measures its pause by the wall clock.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from time import monotonic

from cachetools import LRUCache

from components.models.failures import ModelFailed
from tenants.core.fair_semaphore import FairSemaphore

_IDLE_SECONDS = 300.0
"""Default idle time after which Ollama unloads a model."""

_MOST_TENANTS = 1_000
"""Tenants whose failures a provider remembers. A tenant that is forgotten may call it again."""


@dataclass(slots=True)
class Breaker:
    """Open after `failures` consecutive failures; then admit one call as a trial every `pause` seconds.

    A trial that succeeds closes the breaker. While it is open, the results of calls admitted before are ignored.
    Repeated failures of one caller count as one, so a failed trial by a caller that has already failed does not start
    another pause. Thread-safe.
    """

    failures: int
    pause: float
    clock: Callable[[], float] = monotonic
    _failed: set[object] = field(default_factory=set)
    _opened_at: float | None = None
    _on_trial: bool = False
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_open(self) -> bool:
        """Return whether calls are refused, except for a trial."""
        return self._opened_at is not None

    @property
    def is_resting(self) -> bool:
        """Return whether every call is refused now."""
        with self._lock:
            return self._rests()

    @contextmanager
    def call(self, caller: str | None = None) -> Iterator[None]:
        """Surround one call of the provider and count its result.

        :param caller: caller whose failures count once; if None, every failure counts.
        :raises ModelFailed: `open_circuit`.
        """
        is_trial = self._admit()
        success: bool | None = None
        try:
            yield
            success = True
        except Exception as fault:
            success = None if isinstance(fault, ModelFailed) and fault.is_blameless else False
            raise
        finally:
            self._settle(success, caller or object(), is_trial=is_trial)

    def _admit(self) -> bool:
        with self._lock:
            if self._opened_at is None:
                return False
            if self._rests():
                raise ModelFailed("open_circuit")
            self._on_trial = True
            return True

    def _rests(self) -> bool:
        return self._opened_at is not None and (self._on_trial or self.clock() - self._opened_at < self.pause)

    def _settle(self, success: bool | None, caller: object, *, is_trial: bool) -> None:
        with self._lock:
            if self._opened_at is not None and not is_trial:
                return
            self._on_trial = False
            if success:
                self._failed.clear()
                self._opened_at = None
            elif success is False:
                is_new = caller not in self._failed
                self._failed.add(caller)
                if is_new and (is_trial or len(self._failed) >= self.failures):
                    self._opened_at = self.clock()


class Upstream:
    """A provider: a breaker for all tenants, one for each, and seats for `concurrent` calls at once. Thread-safe."""

    def __init__(self, failures: int, pause: float, concurrent: int) -> None:
        self.breaker = Breaker(failures, pause)
        self.of_tenants: LRUCache[str, Breaker] = LRUCache(_MOST_TENANTS)
        self.seats = FairSemaphore(concurrent)
        self._used_at = self._loaded_by = -inf

    @contextmanager
    def call(self, tenant_id: str) -> Iterator[None]:
        """Surround one call and count its result, for all tenants and for its own; empty if it has none.

        Threat: a few long texts of one tenant time out, and the provider is paused for all tenants. So the failures of
        a tenant pause it for that tenant, and those of several tenants pause it for all.

        :raises ModelFailed: `open_circuit`.
        """
        shared = self.breaker
        with _LOCK:
            own = self.of_tenants.setdefault(tenant_id, Breaker(shared.failures, shared.pause, shared.clock))
        with shared.call(tenant_id or None), own.call():
            yield

    def loading_seconds(self, limit: float) -> float:
        """Return how long a call that starts now may wait for its model to load; 0 when the model is in memory.

        The first call after a long pause gives the provider `limit` seconds, shared by all calls made meanwhile.
        """
        now = monotonic()
        if now - self._used_at > _IDLE_SECONDS:
            self._loaded_by = now + limit
        self._used_at = now
        return max(0.0, self._loaded_by - now)

    def record_loaded(self) -> None:
        """Note that the model has replied, so it is in memory."""
        self._used_at, self._loaded_by = monotonic(), -inf


_MOST_PROVIDERS = 10_000
"""Providers whose breakers and seats are kept. A tenant may change the address of a tool any number of times."""

_UPSTREAMS: LRUCache[tuple[str, ...], Upstream] = LRUCache(_MOST_PROVIDERS)
_LOCK = Lock()


def open_now() -> int:
    """Count the providers that are paused now, for all tenants or for one."""
    with _LOCK:
        breakers = [(one.breaker, *one.of_tenants.values()) for one in _UPSTREAMS.values()]
    return sum(any(breaker.is_resting for breaker in of_one) for of_one in breakers)


def upstream(key: tuple[str, ...], *, failures: int, pause: float, concurrent: int) -> Upstream:
    """Return the provider of this key. Its limits are those of the first call with this key."""
    with _LOCK:
        if key not in _UPSTREAMS:
            _UPSTREAMS[key] = Upstream(failures, pause, concurrent)
        return _UPSTREAMS[key]

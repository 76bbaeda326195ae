"""The speed of a model, learned from its last calls: a slow one gets shorter prompts and is not called in vain."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from time import monotonic

REPLY = 100
"""The expected length of a reply in tokens."""

_WRITE_COST = 3
"""A token written takes as long as this many read, or more (llama.cpp on a processor: 2.6)."""

_STALE_SECONDS = 300.0
_SAMPLES = 3
_MIN_SAMPLES = 2
"""The first call after a pause may have waited for the model to be loaded; one call says nothing."""


@dataclass(slots=True)
class Pace:
    """Seconds for a token read: the best of the last calls.

    Unknown at first, and again when it was not measured for a while, so that a provider that was slow once is tried
    again. Thread-safe.
    """

    clock: Callable[[], float] = monotonic
    _rates: deque[float] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    _timeout: float = 0.0
    _updated_at: float = -inf
    _lock: Lock = field(default_factory=Lock)

    def record(self, prompt_tokens: int, reply_tokens: int, seconds: float) -> None:
        """Record a successful call."""
        with self._lock:
            self._refresh()
            self._rates.append(seconds / max(1, prompt_tokens + _WRITE_COST * reply_tokens))
            self._timeout = 0.0

    def record_timeout(self, prompt_tokens: int, seconds: float) -> None:
        """Record a timed-out call. The next prompts are shorter, but one timeout does not block further calls."""
        with self._lock:
            self._refresh()
            self._timeout = seconds / max(1, prompt_tokens)

    def seconds(self, prompt_tokens: int) -> float:
        """The expected duration of a call with a prompt of this many tokens; 0 when unknown."""
        with self._lock:
            return self._rate() * (prompt_tokens + _WRITE_COST * REPLY)

    def token_budget(self, seconds: float) -> float:
        """The number of tokens that a prompt may have for its call to take no longer than this."""
        with self._lock:
            rate = max(self._rate(), self._timeout if self._is_fresh() else 0.0)
        return seconds / rate - _WRITE_COST * REPLY if rate else inf

    def _rate(self) -> float:
        return min(self._rates) if len(self._rates) >= _MIN_SAMPLES and self._is_fresh() else 0.0

    def _is_fresh(self) -> bool:
        return self.clock() - self._updated_at < _STALE_SECONDS

    def _refresh(self) -> None:
        if not self._is_fresh():
            self._rates.clear()
            self._timeout = 0.0
        self._updated_at = self.clock()

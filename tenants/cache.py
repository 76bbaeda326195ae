"""Values cached per tenant: this process sees its own changes at once, and those of others within seconds."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Generic, TypeAlias, TypeVar

FRESH_SECONDS = 2.0
"""How long another process's change may stay unseen here."""

Key: TypeAlias = tuple[str, str]
"""Database URL and tenant id, so that two installations in one process, such as two tests, do not collide."""

T = TypeVar("T")


class TenantCache(Generic[T]):
    """A thread-safe cache of loaded values, one per tenant."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, T]] = {}
        self._lock = Lock()
        self._expiries = 0

    def peek(self, key: Key) -> T | None:
        """The value in memory; None when it has to be loaded."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and monotonic() - entry[0] < FRESH_SECONDS else None

    def get(self, key: Key, load: Callable[[T | None], T]) -> T:
        """The cached value; once it may be stale, the result of `load`, which gets the last value."""
        entry = self._entries.get(key)
        now = monotonic()
        if entry is not None and now - entry[0] < FRESH_SECONDS:
            return entry[1]
        expiries = self._expiries
        value = load(entry[1] if entry else None)
        with self._lock:
            # A write in this process while loading: the value may be from before it, so it is used once and not cached.
            if expiries == self._expiries:
                self._entries[key] = (now, value)
        return value

    def expire(self, key: Key) -> None:
        """Make the next reader load the value again. Call it after committing a write."""
        with self._lock:
            self._expiries += 1
            if key in self._entries:
                self._entries[key] = (float("-inf"), self._entries[key][1])

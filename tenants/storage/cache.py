"""Values cached per tenant, or by another key.

A process sees its own changes at once, and those of others when it is notified.

Processes that share a database notify each other (`tenants.storage.bus`). A process that cannot be notified now sees
the change a second later. A change without a notice is seen within a minute: a command without Redis sends none, and
neither does a process that is killed right after its commit. So nothing is trusted longer because notices arrive. The
one row that is read of a tenant every minute tells the revisions of what else is cached of it: a value with a
`revision` is read again when that has changed.

While the database does not respond, the last values stay in use, so that questions are still answered. They are an
hour old at most: a withdrawn policy or document must not stay in use for days.

Each cache is bounded: the values that were not used for the longest time are dropped, and loaded again when needed.
"""

import json
from asyncio import to_thread
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from threading import RLock
from time import monotonic
from typing import Any, Generic, TypeAlias, TypeVar

from cachetools import LRUCache

from settings import get_settings
from tenants.core import context
from tenants.core.errors import TryAgain
from tenants.storage import bus

FRESH_SECONDS = 1.0
"""Longest delay until another process's change is seen without a notice."""

NOTIFIED_SECONDS = 60.0
"""The same while notices arrive: for the change of a process that cannot send them."""

_CHANNEL = "expired"

STALE_SECONDS = 3_600.0
"""Maximum age of a value while the database does not respond."""

PATIENCE_SECONDS = 1.0
"""Time to wait for a newer value if the cached one is only seconds old."""

REST_SECONDS = 5.0
"""Pause after a timeout before the next query."""

MAX_VALUES = 10_000
"""Values of a cache whose values are small."""

_LOADERS = 8
_LOADER_NAME = "tenant-cache"

Key: TypeAlias = tuple[str, str]
"""Database URL and tenant id, so that two installations in one process, such as two tests, do not collide."""

T = TypeVar("T")


def own_key() -> Key:
    """Return the key of the tenant in context."""
    return get_settings().database, context.current().tenant_id


@dataclass(slots=True)
class _Entry(Generic[T]):
    """A loaded value; after it has expired, `loaded_at` is minus infinity."""

    loaded_at: float
    value: T
    revision: object

    def is_fresh(self, key: Key, revision: object) -> bool:
        seconds = _fresh_seconds(key) if revision is None else STALE_SECONDS
        return self.revision == revision and monotonic() - self.loaded_at < seconds


class TenantCache(Generic[T]):
    """A thread-safe cache of loaded values, one per tenant.

    :param name: the same in all processes; empty for a cache that is of this one alone.
    :param max_size: the bound of the values' sizes together.
    :param size_of: the size of a value; 1 if None.
    :ivar hits, misses: look-ups since the process started.
    """

    def __init__(self, name: str = "", max_size: int = MAX_VALUES, size_of: Callable[[T], int] | None = None) -> None:
        self.name = name
        if name:
            _CACHES[name] = self
        self._entries: LRUCache[Key, _Entry[T]] = LRUCache(
            max_size,
            # A value beyond the bound is still cached, alone.
            None if size_of is None else lambda entry: min(max_size, size_of(entry.value)),
        )
        self._loading: dict[Key, Future[T]] = {}
        self._needed: dict[Key, Future[T]] = {}
        self._rests: dict[Key, float] = {}
        self._lock = RLock()
        self._expiries: Counter[str | None] = Counter()
        self.hits = self.misses = 0

    @property
    def size(self) -> int:
        """Return the size of its values together, in the unit of its bound."""
        return int(self._entries.currsize)

    def peek(self, key: Key, revision: object = None) -> T | None:
        """Return the value in memory; None if it has to be loaded."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not entry.is_fresh(key, revision):
                return None
            self.hits += 1
            return entry.value

    async def load(self, key: Key, load: Callable[[T | None], T]) -> T:
        """Return the same as `get`. Safe on the event loop: `load` runs in a thread."""
        value = self.peek(key)
        return value if value is not None else await to_thread(self.get, key, load)

    def get(self, key: Key, load: Callable[[T | None], T], revision: object = None) -> T:
        """Return the cached value; once it may be stale, the result of `load`, which gets the last value.

        Where `load` raises `TryAgain` or takes long, the last value serves on, unless a write in this process has
        changed it, or it is known to be of another revision.

        :param revision: of the value, read before it; None if only its age tells whether it may be stale.
        """
        with self._lock:
            entry = self._entries.get(key)
            age = monotonic() - entry.loaded_at if entry is not None else float("inf")
            is_fresh = entry is not None and entry.is_fresh(key, revision)
            self.hits += is_fresh
            self.misses += not is_fresh
        if entry is None or age >= STALE_SECONDS or entry.revision != revision:
            return self._load_shared(key, load, revision)
        if is_fresh or monotonic() < self._rests.get(key, 0.0):
            return entry.value
        try:
            return self._refresh(key, load).result(PATIENCE_SECONDS)
        except (TryAgain, TimeoutError):
            self._rests[key] = monotonic() + REST_SECONDS
            return entry.value

    def load_all(self, load: Callable[[], Mapping[Key, T]]) -> Mapping[Key, T]:
        """Return the result of `load`, and cache its values, so that work on all tenants costs one query."""
        with self._lock:
            now, expiries = monotonic(), Counter(self._expiries)
        values = load()
        with self._lock:
            for key, value in values.items():
                if self._expired(key) == expiries[key[1]] + expiries[None]:
                    self._entries[key] = _Entry(now, value, None)
        return values

    def expire(self, key: Key) -> None:
        """Make the next reader load the value again. Call it after committing a write."""
        self.drop(key[1])
        if self.name:
            bus.publish(_CHANNEL, json.dumps([self.name, key[1]]))

    def drop(self, tenant: str | None) -> None:
        """Expire a tenant's value, or all values if None, so that the next reader loads it again."""
        with self._lock:
            self._expiries[tenant] += 1
            for key in [key for key in (*self._loading, *self._rests, *self._entries) if tenant in (None, key[1])]:
                self._loading.pop(key, None)
                self._rests.pop(key, None)
                if key in self._entries:
                    self._entries[key].loaded_at = float("-inf")

    def _refresh(self, key: Key, load: Callable[[T | None], T]) -> Future[T]:
        """Return the running load, or start one. All waiting readers share it; it has its own thread."""
        with self._lock:
            loading = self._loading.get(key)
            if loading is None:
                loading = self._loading[key] = _loaders().submit(copy_context().run, self._load, key, load)
                loading.add_done_callback(lambda done: self._end(key, done))
            return loading

    def _load_shared(self, key: Key, load: Callable[[T | None], T], revision: object) -> T:
        """Return a value whose load has begun after this call. Each key has one such load at a time."""
        with self._lock:
            earlier = self._needed.get(key)
        # Do not wait for a database that does not respond a second time.
        if earlier is not None and isinstance(error := earlier.exception(), TryAgain):
            raise error
        with self._lock:
            loading = self._needed.get(key)
            if loading is None:
                self._needed[key] = Future[T]()
        if loading is not None:
            return loading.result()
        try:
            value = self._load(key, load, revision)
        except BaseException as error:
            self._settle(key).set_exception(error)
            raise
        self._settle(key).set_result(value)
        return value

    def _settle(self, key: Key) -> Future[T]:
        with self._lock:
            return self._needed.pop(key)

    def _end(self, key: Key, done: Future[T]) -> None:
        with self._lock:
            if self._loading.get(key) is done:
                del self._loading[key]

    def _load(self, key: Key, load: Callable[[T | None], T], revision: object = None) -> T:
        with self._lock:
            entry = self._entries.get(key)
            now, expiries = monotonic(), self._expired(key)
        value = load(entry.value if entry else None)
        with self._lock:
            # A write in this process while loading: the value may be from before it, so it is used once and not cached.
            if expiries == self._expired(key):
                self._rests.pop(key, None)
                self._entries[key] = _Entry(now, value, revision)
        return value

    def _expired(self, key: Key) -> int:
        return self._expiries[key[1]] + self._expiries[None]


def named() -> "Iterable[TenantCache[Any]]":
    """Return the caches that have a name."""
    return _CACHES.values()


def _fresh_seconds(key: Key) -> float:
    return NOTIFIED_SECONDS if bus.is_live(key[0]) else FRESH_SECONDS


@lru_cache(maxsize=1)
def _loaders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_LOADERS, _LOADER_NAME)


_CACHES: "dict[str, TenantCache[Any]]" = {}  # of values of every kind


def _on_notice(payload: str) -> None:
    name, tenant = json.loads(payload)
    if name in _CACHES:
        _CACHES[name].drop(tenant)


def _drop_all() -> None:
    for cache in _CACHES.values():
        cache.drop(None)


bus.on(_CHANNEL, _on_notice, _drop_all)

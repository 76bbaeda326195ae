"""Results held in memory for the next question that needs the same ones."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Lock
from typing import Generic, Protocol, TypeVar

from cachetools import LRUCache
from haystack import Document

from components.turn import Frozen
from tenants.core import context

T = TypeVar("T")


class TenantLruCache(Generic[T]):
    """The most recently used results; no tenant ever gets another's. Thread-safe.

    Only a digest of each request is stored, so erasing a person's data leaves nothing to erase here.

    :param max_size: number of results; 0 disables the cache.
    """

    def __init__(self, max_size: int) -> None:
        self._results: LRUCache[bytes, T] = LRUCache(max_size)
        self._lock = Lock()

    def key(self, *request: object) -> bytes:
        """Return the key of a result for the tenant in context.

        :param request: everything that the result depends on; two requests are the same when their `repr` is.
        """
        return sha256(repr((context.current().tenant_id, *request)).encode("utf-8", "surrogatepass")).digest()

    def get(self, key: bytes) -> T | None:
        """Return the result stored under this key, or None."""
        with self._lock:
            return self._results.get(key)

    def put(self, key: bytes, result: T) -> None:
        """Store a result and evict the least recently used one."""
        with self._lock, suppress(ValueError):  # a cache of size 0 takes none
            self._results[key] = result


@dataclass(frozen=True, slots=True)
class SearchResult(Frozen):
    """The documents of one search, best first.

    `complete`: every vector of the index was searched. `cached`: the result comes from an earlier question's search.
    """

    documents: tuple[Document, ...]
    complete: bool = True
    cached: bool = False


class Versioned(Protocol):
    """The part of a collection that the cache needs."""

    @property
    def version(self) -> str | None:
        """Changes with every write; None when writes cannot be detected."""


class SearchCache:
    """Search results, valid until the index changes.

    The key holds the collection's version, which changes with every write in any process and any generation, and
    everything else that the result depends on. A collection without a version is always searched.

    :param max_size: number of searches; 0 disables the cache.
    """

    def __init__(self, max_size: int) -> None:
        self._results: TenantLruCache[SearchResult] = TenantLruCache(max_size)

    def get_or_search(self, collection: Versioned, request: object, search: Callable[[], SearchResult]) -> SearchResult:
        """Return the cached result, else that of `search`.

        :param request: everything that the result depends on besides the chunks.
        """
        version = collection.version
        if version is None:
            return search()
        key = self._results.key(version, request)
        cached = self._results.get(key)
        if cached is not None:
            return cached
        result = search()
        # A partial search may succeed in full next time, and one during a write may have seen half of it.
        if result.complete and collection.version == version:
            self._results.put(key, replace(result, cached=True))
        return result

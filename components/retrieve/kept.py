"""Results kept in memory for the next question that asks for the same."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import Generic, TypeVar

from tenants import context

T = TypeVar("T")


class Kept(Generic[T]):
    """The results last used, each its tenant's alone. Thread-safe.

    Of what was asked only a digest is kept, so there is nothing to erase with a person.

    :param most: results kept; 0 keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: OrderedDict[bytes, T] = OrderedDict()
        self._lock = Lock()

    def key(self, *asked: object) -> bytes:
        """What a result of the tenant in context is kept under.

        :param asked: all that the result depends on; its `repr` tells it from any other.
        """
        return sha256(repr((context.current().tenant_id, *asked)).encode("utf-8", "surrogatepass")).digest()

    def get(self, key: bytes) -> T | None:
        """What was put under the same key."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, key: bytes, result: T) -> None:
        """Keep a result, and let go of the one that was not used for longest."""
        with self._lock:
            self._results[key] = result
            while len(self._results) > self._most:
                self._results.popitem(last=False)

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

    def get(self, *asked: object) -> T | None:
        """What was put for the tenant in context under the same.

        :param asked: all that the result depends on; its `repr` tells it from any other.
        """
        if not self._most:
            return None
        key = _digest(asked)
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, result: T, *asked: object) -> None:
        """Keep a result, and let go of the one that was not used for longest."""
        if not self._most:
            return
        with self._lock:
            self._results[_digest(asked)] = result
            while len(self._results) > self._most:
                self._results.popitem(last=False)


def _digest(asked: tuple[object, ...]) -> bytes:
    return sha256(repr((context.current().tenant_id, *asked)).encode("utf-8", "surrogatepass")).digest()

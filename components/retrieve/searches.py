"""Searches made before, kept in memory for the next one who asks the same."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Lock
from typing import Protocol

from components.turn import Frozen, Passage
from tenants import context


@dataclass(frozen=True, slots=True)
class Found(Frozen):
    """What one search found, best first.

    `whole`: by all the vectors that there are. `known`: by an earlier question's search.
    """

    passages: tuple[Passage, ...]
    whole: bool = True
    known: bool = False


class Versioned(Protocol):
    """As much of a collection as has to be known here."""

    @property
    def version(self) -> str | None:
        """Another one after every write; None when there is no telling."""


class Searches:
    """What searches of collections found, the last used ones. Thread-safe.

    A search is known by the tenant, the collection's version and everything that its result depends on. The version is
    another one after every write, in every generation and every process, so that what is found here is what a search
    would find now; a collection that others may write to unseen has none, and is always searched. Of a question only a
    digest is kept, so there is nothing to erase with a person.

    :param most: searches kept; 0 keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, Found] = OrderedDict()
        self._lock = Lock()

    def found(self, collection: Versioned, asked: object, search: Callable[[], Found]) -> Found:
        """What `search` finds, or has found when it was last asked the same.

        :param asked: everything that the result depends on beside the chunks; its `repr` tells it from any other.
        """
        version = collection.version
        if version is None or not self._most:
            return search()
        key = sha256(repr((context.current().tenant_id, version, asked)).encode()).digest()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = search()
        # A search in part is another one's next time; of a write in between it may have seen one half.
        if made.whole and collection.version == version:
            with self._lock:
                self._kept[key] = replace(made, known=True)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return made

"""Searches made before, known again by the next one who asks the same of the same chunks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from components.retrieve.kept import Kept
from components.turn import Frozen, Passage


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
    """What searches of collections found.

    A search is known by the collection's version and everything that its result depends on. The version is another one
    after every write, in every generation and every process, so that what is known here is what a search would find
    now; a collection that others may write to unseen has none, and is always searched.

    :param most: searches kept; 0 keeps none.
    """

    def __init__(self, most: int) -> None:
        self._kept: Kept[Found] = Kept(most)

    def found(self, collection: Versioned, asked: object, search: Callable[[], Found]) -> Found:
        """What `search` finds, or has found when it was last asked the same.

        :param asked: everything that the result depends on beside the chunks.
        """
        version = collection.version
        if version is None:
            return search()
        key = self._kept.key(version, asked)
        known = self._kept.get(key)
        if known is not None:
            return known
        made = search()
        # A search in part is another one's next time; of a write in between it may have seen one half.
        if made.whole and collection.version == version:
            self._kept.put(key, replace(made, known=True))
        return made

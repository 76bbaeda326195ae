"""Gaps grouped by meaning: by the words that questions share, and by their vectors where there are any."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from operator import itemgetter
from threading import Lock
from typing import TypeAlias

import numpy as np
from cachetools import LRUCache, cached

from tenants.core import fairness
from tenants.knowledge.gaps import Gap

_ALIKE = 0.5
"""Minimum share of common stems (Jaccard) for two gaps to be grouped."""

_MOST_PLACES = 100_000
"""Gaps whose groups are kept, of all tenants together: 4 MB."""

_Features: TypeAlias = tuple[str, tuple[str, ...], bytes | None]
"""Question, stems and vector of a gap, by which it is compared with others."""
_CodesOf: TypeAlias = Callable[[str], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Group:
    """Gaps with the same meaning, most frequent first."""

    gaps: tuple[Gap, ...]

    @property
    def count(self) -> int:
        """How often any of them was asked."""
        return sum(gap.count for gap in self.gaps)

    @property
    def last_at(self) -> datetime:
        """When one of them was last asked."""
        return max(gap.last_at for gap in self.gaps)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The nearest documents of all of them, each once."""
        return tuple(dict.fromkeys(doc_id for gap in self.gaps for doc_id in gap.doc_ids))


def grouped(gaps: Iterable[Gap], alike: float | None = None, *, codes_of: _CodesOf) -> tuple[Group, ...]:
    """Gaps by meaning, the group asked most first.

    Each gap, in the order given, joins the group whose leading gap is nearest to it, or leads a new one: the same gaps
    in the same order always make the same groups. Near is who shares half of its stems, or whose vector has at least
    this cosine. Questions about different codes are never near: E20 is not E401.

    :param gaps: their vectors, where they have any, are of one model.
    :param alike: cosine from which two questions mean the same; None compares words alone.
    :param codes_of: finds the codes in a question.
    """
    listed = [*gaps]
    places = _places(tuple((gap.question, gap.stems, gap.vector) for gap in listed), alike, codes_of)
    groups = (Group(tuple(listed[place] for place in members)) for members in places)
    return tuple(sorted(groups, key=lambda group: -group.count))


def _digest(gaps: Sequence[_Features], alike: float | None, codes_of: _CodesOf) -> bytes:
    """Return a key that keeps no question in memory, so that an erasure leaves nothing to erase here."""
    digest = sha256(repr((alike, codes_of)).encode())
    for question, stems, vector in gaps:
        digest.update(repr((question, stems, vector and len(vector))).encode("utf-8", "surrogatepass"))
        digest.update(vector or b"")
    return digest.digest()


@cached(LRUCache(_MOST_PLACES, lambda groups: sum(map(len, groups))), _digest, Lock())
def _places(gaps: Sequence[_Features], alike: float | None, codes_of: _CodesOf) -> Sequence[Sequence[int]]:
    """Return the places of each group's gaps. Readers of the same gaps, such as open pages, share the result."""
    return _Grouping(gaps, alike, codes_of).groups


class _Grouping:
    def __init__(self, gaps: Sequence[_Features], alike: float | None, codes_of: _CodesOf) -> None:
        self.groups: list[list[int]] = []
        self._alike = alike
        ids: dict[str, int] = {}
        self._stems = [sum(1 << ids.setdefault(stem, len(ids)) for stem in set(words)) for _, words, _ in gaps]
        """A bit for each stem."""
        self._codes = [frozenset(codes_of(question)) for question, _, _ in gaps]
        self._leaders: list[int] = []
        if alike is not None and gaps:
            size = max(len(vector or b"") for _, _, vector in gaps)
            # A question without a vector gets zeros, which are near to nothing.
            vectors = np.stack([np.frombuffer(vector or bytes(size), np.float32) for _, _, vector in gaps])
            self._cosines = vectors @ vectors.T
        for place in range(len(gaps)):
            fairness.yield_to_questions()
            number = self._nearest(place)
            if number is not None:
                self.groups[number].append(place)
            else:
                self._leaders.append(place)
                self.groups.append([place])

    def _nearest(self, place: int) -> int | None:
        numbers = [number for number, leader in enumerate(self._leaders) if not self._differ(place, leader)]
        leaders = [self._leaders[number] for number in numbers]
        shares = [_overlap(self._stems[place], self._stems[leader]) for leader in leaders]
        share, nearest = max(zip(shares, numbers, strict=True), key=itemgetter(0), default=(0.0, 0))
        if share >= _ALIKE:
            return nearest
        if self._alike is None or not leaders:
            return None
        cosines = self._cosines[place, leaders]
        nearest = int(np.argmax(cosines))
        return numbers[nearest] if float(cosines[nearest]) >= self._alike else None

    def _differ(self, place: int, leader: int) -> bool:
        """Return whether both questions name codes, and not the same ones."""
        named, others = self._codes[place], self._codes[leader]
        return bool(named and others) and named != others


def _overlap(stems: int, others: int) -> float:
    return (stems & others).bit_count() / ((stems | others).bit_count() or 1)

"""Gaps grouped by meaning: by the words that questions share, and by their vectors where there are any."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from tenants.knowledge.gaps import Gap

_ALIKE = 0.5
"""Minimum share of common stems (Jaccard) for two gaps to be grouped."""


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


def grouped(gaps: Iterable[Gap], alike: float | None = None) -> tuple[Group, ...]:
    """Gaps by meaning, the group asked most first.

    Each gap, in the order given, joins the group whose leading gap is nearest to it, or leads a new one: the same gaps
    in the same order always make the same groups. Near is who shares half of its stems, or whose vector has at least
    this cosine.

    :param gaps: their vectors, where they have any, are of one model.
    :param alike: cosine from which two questions mean the same; None compares words alone.
    """
    grouping = _Grouping(alike)
    for gap in gaps:
        grouping.add(gap)
    groups = (Group(tuple(members)) for members in grouping.groups)
    return tuple(sorted(groups, key=lambda group: -group.count))


class _Grouping:
    def __init__(self, alike: float | None) -> None:
        self.groups: list[list[Gap]] = []
        self._alike = alike
        self._by_stem: dict[str, list[int]] = {}
        self._vectors: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def add(self, gap: Gap) -> None:
        number = self._nearest(gap)
        if number is not None:
            self.groups[number].append(gap)
            return
        number = len(self.groups)
        for stem in set(gap.stems):
            self._by_stem.setdefault(stem, []).append(number)
        self._keep_vector(gap, number)
        self.groups.append([gap])

    def _nearest(self, gap: Gap) -> int | None:
        rivals = sorted({number for stem in gap.stems for number in self._by_stem.get(stem, ())})
        shares = [(_overlap(gap, self.groups[number][0]), number) for number in rivals]
        share, nearest = max(shares, key=lambda one: one[0], default=(0.0, 0))
        if share >= _ALIKE:
            return nearest
        if self._alike is None or gap.vector is None or not self._vectors.size:
            return None
        cosines = self._vectors[: len(self.groups)] @ np.frombuffer(gap.vector, np.float32)
        nearest = int(np.argmax(cosines))
        return nearest if float(cosines[nearest]) >= self._alike else None

    def _keep_vector(self, gap: Gap, number: int) -> None:
        """The rows of groups whose leader has no vector stay zero, which is near to nothing."""
        if gap.vector is None:
            if len(self._vectors):
                self._grow(number)
            return
        vector = np.frombuffer(gap.vector, np.float32)
        if not self._vectors.size:
            self._vectors = np.zeros((max(64, 2 * number), len(vector)), np.float32)
        self._grow(number)
        self._vectors[number] = vector

    def _grow(self, number: int) -> None:
        if number >= len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])


def _overlap(gap: Gap, other: Gap) -> float:
    ours, theirs = set(gap.stems), set(other.stems)
    return len(ours & theirs) / (len(ours | theirs) or 1)

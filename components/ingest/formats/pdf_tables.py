"""Tables by their ruling lines."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from components.ingest.formats.pdf_drawings import Box, Drawings
from components.ingest.formats.pdf_page import Word
from components.turn import Frozen

_TOLERANCE = 3.0
"""Points between rules that are meant to touch, or to be one."""
_MAX_RULES = 2_000


@dataclass(frozen=True, slots=True)
class Grid(Frozen):
    """A ruled table.

    :param columns: where its columns begin, from left to right; `right` where the last one ends.
    :param rows: where its rows begin, from the top down; `bottom` where the last one ends.
    """

    columns: tuple[float, ...]
    right: float
    rows: tuple[float, ...]
    bottom: float

    @property
    def height(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def holds(self, word: Word) -> bool:
        """Whether the middle of a word is in it."""
        x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
        return self.columns[0] <= x <= self.right and self.bottom <= y <= self.rows[0]

    def cell(self, word: Word) -> tuple[int, int]:
        """Row and column of a word that it holds."""
        x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
        row = bisect_right([-top for top in self.rows], -y) - 1
        return max(0, row), max(0, bisect_right(self.columns, x) - 1)


def grids(drawn: Drawings) -> list[Grid]:
    """The tables of a page: rules that touch each other, with two rows and two columns between them at least."""
    if not drawn.across or not drawn.down or len(drawn.across) + len(drawn.down) > _MAX_RULES:
        return []
    tables = []
    for group in _touching([*drawn.across, *drawn.down]):
        across = {box for box in group if box[2] - box[0] >= box[3] - box[1]}
        down = [box for box in group if box not in across]
        tops = _places([(y0 + y1) / 2 for _, y0, _, y1 in across])[::-1]
        lefts = _places([(x0 + x1) / 2 for x0, _, x1, _ in down])
        if len(tops) > 2 and len(lefts) > 2:
            tables.append(Grid(tuple(lefts[:-1]), lefts[-1], tuple(tops[:-1]), tops[-1]))
    return tables


def _touching(rules: Sequence[Box]) -> list[list[Box]]:
    """Rules in groups, each connected."""
    groups: list[list[Box]] = []
    for rule in rules:
        joined = [group for group in groups if any(_overlap(rule, other) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([rule, *(other for group in joined for other in group)])
    return groups


def _overlap(box: Box, other: Box) -> bool:
    return (
        box[0] <= other[2] + _TOLERANCE
        and other[0] <= box[2] + _TOLERANCE
        and box[1] <= other[3] + _TOLERANCE
        and other[1] <= box[3] + _TOLERANCE
    )


def _places(values: Sequence[float]) -> list[float]:
    """Values in order, those that are near each other as one."""
    places: list[float] = []
    for value in sorted(values):
        if not places or value - places[-1] > _TOLERANCE:
            places.append(value)
    return places

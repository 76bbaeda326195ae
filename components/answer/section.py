"""The section that a passage belongs to, as the units that an answer is chosen from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from components.answer.units import Unit, indent, is_numbered, plain, units
from components.language.captions import is_resolution, leads_elsewhere
from components.language.normalise import fold
from components.turn import Passage

_MOST_REPEATED = 12
"""Units that one chunk repeats of the one before: overlap is short, and an article may well say a thing twice."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Part:
    """The units under one caption of a section: a tab, a step of the whole, a small section merged into it.

    `caption` is the caption's unit where it is a line of the text, `name` its words, empty for the opening part.
    """

    caption: Unit | None
    name: str
    units: tuple[Unit, ...]

    @property
    def whole(self) -> tuple[Unit, ...]:
        """The caption and what stands below it."""
        return (self.caption, *self.units) if self.caption else self.units

    @property
    def resolves(self) -> bool:
        """Whether it gives the solution of a problem that the parts before it state."""
        return bool(self.units) and is_resolution(self.name)


def in_order(passages: Sequence[Passage]) -> tuple[Unit, ...]:
    """The units of consecutive chunks, what one repeats of the chunk before left out."""
    found: list[Unit] = []
    for passage in passages:
        own = units(passage)
        same_section = bool(found) and found[-1].passage.heading == passage.heading
        found.extend(own[_repeated(found, own) if same_section else 0 :])
    return tuple(found)


def _repeated(before: Sequence[Unit], own: Sequence[Unit]) -> int:
    """How many units at the start of a chunk only repeat the end of the one before, or its table's header."""
    if own and own[0].kind == before[-1].kind == "row":
        known = {unit.text for unit in before if unit.kind == "row"}
        return next((at for at in (2, 1) if all(unit.text in known for unit in own[:at])), 0)
    # Word by word: what was two lines of a list item is repeated as one.
    said = [word for unit in before[-2 * _MOST_REPEATED :] for word in _words(unit)]
    opening = [_words(unit) for unit in own[:_MOST_REPEATED]]
    for size in range(len(opening), 0, -1):
        repeated = list(chain.from_iterable(opening[:size]))
        if repeated and said[-len(repeated) :] == repeated:
            return size
    return 0


def _words(unit: Unit) -> list[str]:
    return _WORD.findall(fold(plain(unit)))


def parts(section: Sequence[Unit]) -> tuple[Part, ...]:
    """The parts of a section. One that leads elsewhere ("See also") is none."""
    found: list[Part] = []
    caption: Unit | None = None
    name, heading = "", section[0].passage.heading if section else ""
    held: list[Unit] = []

    def close() -> None:
        if (held or caption) and not leads_elsewhere(name):
            found.append(Part(caption, name, tuple(held)))
        held.clear()

    for unit in section:
        if unit.passage.heading != heading:
            close()
            heading = unit.passage.heading
            caption, name = None, heading.split(" › ")[-1]
        if unit.kind == "heading":
            close()
            caption, name = unit, unit.text.lstrip("# ")
        elif unit.kind != "debris":
            held.append(unit)
    close()
    return tuple(found)


def blocks(among: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    """Units grouped as they are read: a paragraph, a list with its lead and all that is indented under its items, a
    table, code with its lead.
    """
    found: list[list[Unit]] = []
    for unit in among:
        if found and _goes_on(found[-1], unit):
            found[-1].append(unit)
        else:
            found.append([unit])
    return [tuple(block) for block in found]


def _goes_on(block: Sequence[Unit], unit: Unit) -> bool:
    last = block[-1]
    if last.kind == "lead":
        return unit.kind != "heading"
    if any(one.kind == "item" for one in block):
        return unit.kind == "item" or indent(unit) != 0
    if unit.kind in ("row", "code"):
        return last.kind == unit.kind
    return unit.kind in ("sentence", "lead") and last.kind == "sentence" and _same_paragraph(last, unit)


def _same_paragraph(one: Unit, two: Unit) -> bool:
    return one.passage is two.passage and "\n\n" not in one.passage.text[one.sentence.end : two.sentence.start]


def trimmed(chosen: Sequence[Unit]) -> tuple[Unit, ...]:
    """The units without what cannot open an answer, a step whose first ones are missing, and what cannot close one,
    a line that announces something or a caption over nothing.
    """
    left = list(chosen)
    while left and _is_orphan(left[0]):
        left.pop(0)
        while left and not is_numbered(left[0]) and (left[0].kind == "item" or indent(left[0]) > 0):
            left.pop(0)
    while left and left[-1].kind in ("lead", "heading"):
        left.pop()
    return tuple(left)


def _is_orphan(unit: Unit) -> bool:
    return is_numbered(unit) and int("".join(filter(str.isdigit, unit.text[:3])) or 1) > 1


def steps(among: Sequence[Unit]) -> int:
    """How many steps at the outermost level."""
    numbered = [indent(unit) for unit in among if is_numbered(unit)]
    return numbered.count(min(numbered)) if numbered else 0


def flat(found: Sequence[Part]) -> Iterator[Unit]:
    """The units of parts one after the other, captions included."""
    return chain.from_iterable(part.whole for part in found)

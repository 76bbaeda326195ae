"""The section that a passage belongs to, as the units that an answer is chosen from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from components.answer.units import Unit, indent, is_numbered, plain, units
from components.language.captions import innermost, is_cause, is_example, is_resolution, is_statement, leads_elsewhere
from components.language.normalise import fold
from components.turn import Passage

_MAX_REPEATED = 12
"""Units that one chunk repeats of the one before: overlap is short, and an article may well say a thing twice."""

_ENDS = ".!?…:"
_PROMISES = re.compile(
    r"\bследующ\w+ (?:\w+ )?(?:шаг|действи|инструкци|процедур|операци)\w*\b[^.]*\.$|"
    r"\bfollowing (?:\w+ )?(?:steps|procedures?|actions|instructions)\b[^.]*\.$",
    re.IGNORECASE,
)
"""A full sentence that says that steps come next."""

_WORD = re.compile(r"\w+")
_MARKER = re.compile(r"(?:^|(?<=[.:;!?])\s+)\d{1,2}[.)]\s")
"""The number of a list item, also where two items stand in one line."""


@dataclass(frozen=True, slots=True)
class Part:
    """The units under one caption of a section: a tab, a step of the whole, a small section merged into it.

    `caption` is the caption's unit where it is a line of the text, `name` its words, empty for the opening part.
    """

    caption: Unit | None
    name: str
    units: tuple[Unit, ...]

    @property
    def with_caption(self) -> tuple[Unit, ...]:
        """The caption and what stands below it."""
        return (self.caption, *self.units) if self.caption else self.units

    @property
    def resolves(self) -> bool:
        """Whether it gives the solution of a problem that the parts before it state."""
        return bool(self.units) and is_resolution(self.name)

    @property
    def states(self) -> bool:
        """Whether it only says what the problem or the question is."""
        return is_statement(self.name)

    @property
    def gives_cause(self) -> bool:
        """Whether it says why a problem arises."""
        return bool(self.units) and is_cause(self.name)


def in_order(passages: Sequence[Passage]) -> tuple[Unit, ...]:
    """The units of consecutive chunks, what one repeats of the chunk before left out."""
    merged: list[Unit] = []
    for passage in passages:
        passage_units = units(passage)
        same_section = bool(merged) and merged[-1].passage.heading == passage.heading
        merged.extend(passage_units[_repeated(merged, passage_units) if same_section else 0 :])
    return tuple(merged)


def _repeated(before: Sequence[Unit], following: Sequence[Unit]) -> int:
    """How many units at the start of a chunk only repeat the end of the one before, or its table's header."""
    if following and following[0].kind == before[-1].kind == "row":
        row_texts = {unit.text for unit in before if unit.kind == "row"}
        return next((at for at in (2, 1) if all(unit.text in row_texts for unit in following[:at])), 0)
    # Word by word: what was two lines of a list item is repeated as one.
    last_words = [word for unit in before[-2 * _MAX_REPEATED :] for word in _words(unit)]
    opening = [_words(unit) for unit in following[:_MAX_REPEATED]]
    for size in range(len(opening), 0, -1):
        repeated = list(chain.from_iterable(opening[:size]))
        if repeated and last_words[-len(repeated) :] == repeated:
            return size
    return 0


def _words(unit: Unit) -> list[str]:
    return _WORD.findall(_MARKER.sub(" ", fold(plain(unit))))


def parts(section: Sequence[Unit]) -> tuple[Part, ...]:
    """The parts of a section. What leads elsewhere ("See also") is none, nor are keywords above the first caption."""
    section_parts: list[Part] = []
    caption: Unit | None = None
    name, heading = "", section[0].passage.heading if section else ""
    part_units: list[Unit] = []

    def close() -> None:
        if (part_units or caption) and not leads_elsewhere(name):
            section_parts.append(Part(caption, name, tuple(part_units)))
        part_units.clear()

    for unit in section:
        if unit.passage.heading != heading:
            close()
            heading = unit.passage.heading
            caption, name = None, innermost(heading)
        if unit.kind == "heading" and steps(part_units) and is_example(unit.text):
            # What a step shows is no end of the procedure.
            part_units.append(unit)
        elif unit.kind == "heading":
            close()
            caption, name = unit, unit.text.lstrip("# ")
        elif unit.kind != "debris":
            part_units.append(unit)
    close()
    if len(section_parts) > 1 and not section_parts[0].name and _is_keywords(section_parts[0].units):
        section_parts.pop(0)
    return tuple(section_parts)


def _is_keywords(opening: Sequence[Unit]) -> bool:
    """Whether a document opens with words to find it by: a line that is no sentence, semicolons between them or not."""
    if not opening or any(unit.kind != "sentence" for unit in opening):
        return False
    *before, last = (unit.text[-1] for unit in opening)
    return last not in _ENDS and set(before) <= {";"}


def blocks(among: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    """Units grouped as they are read: a paragraph, a list with its lead and all that is indented under its items, a
    table, code with its lead.
    """
    grouped: list[list[Unit]] = []
    for unit in among:
        if grouped and _goes_on(grouped[-1], unit):
            grouped[-1].append(unit)
        else:
            grouped.append([unit])
    return [tuple(block) for block in grouped]


def _goes_on(block: Sequence[Unit], unit: Unit) -> bool:
    last = block[-1]
    if last.kind == "lead":
        return unit.kind != "heading"
    if any(other.kind == "item" for other in block):
        return unit.kind == "item" or indent(unit) != 0
    if unit.kind in ("row", "code"):
        return last.kind == unit.kind
    return unit.kind in ("sentence", "lead") and last.kind == "sentence" and _same_paragraph(last, unit)


def _same_paragraph(unit: Unit, following: Unit) -> bool:
    return (
        unit.passage is following.passage
        and "\n\n" not in unit.passage.text[unit.sentence.end : following.sentence.start]
    )


def trimmed(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The units without what cannot open an answer, a step whose first ones are missing, what cannot close one, a line
    that announces something or a caption over nothing, and lines within that announce what may not be quoted.
    """
    following = [*units[1:], None]
    remaining = [unit for unit, after in zip(units, following, strict=True) if not _announces_lost(unit, after)]
    while remaining and _is_orphan(remaining[0]):
        remaining.pop(0)
        while remaining and not is_numbered(remaining[0]) and (remaining[0].kind == "item" or indent(remaining[0]) > 0):
            remaining.pop(0)
    while remaining and (remaining[-1].kind in ("lead", "heading") or _leads_on(remaining[-1])):
        remaining.pop()
    return tuple(remaining)


def announces(unit: Unit) -> bool:
    """Whether it ends in a colon over nothing, as a step does whose own list stands elsewhere."""
    return unit.kind not in ("row", "code") and plain(unit).endswith(":")


def _leads_on(unit: Unit) -> bool:
    return announces(unit) or (unit.kind == "sentence" and _PROMISES.search(plain(unit)) is not None)


def _announces_lost(unit: Unit, after: Unit | None) -> bool:
    """Whether what a line announces is left out: words stand between it and what is quoted next."""
    if after is None or after.kind in ("item", "row", "code"):
        return False
    between = unit.passage.text[unit.sentence.end : after.sentence.start if after.passage is unit.passage else None]
    return (announces(unit) or plain(unit).endswith(",")) and any(map(str.isalnum, between))


def _is_orphan(unit: Unit) -> bool:
    return is_numbered(unit) and int("".join(filter(str.isdigit, unit.text[:3])) or 1) > 1


def steps(among: Sequence[Unit]) -> int:
    """How many steps at the outermost level."""
    numbered = [indent(unit) for unit in among if is_numbered(unit)]
    return numbered.count(min(numbered)) if numbered else 0


def flat(section_parts: Sequence[Part]) -> Iterator[Unit]:
    """The units of parts one after the other, captions included."""
    return chain.from_iterable(part.with_caption for part in section_parts)

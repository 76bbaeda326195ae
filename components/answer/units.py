"""The pieces an extractive answer is made of: sentences, list items, table rows, and what belongs together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.judge.analysis import Analysis, Sentence, analyse
from components.turn import Passage

UnitKind = Literal["sentence", "lead", "item", "row", "code", "heading"]

_ITEM = re.compile(r"(?:[-*+•–—]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"#{1,6}\s")
# A heading that lost its mark when its short section was merged: a few words on a line, no full stop, no figures.
_CAPTION = re.compile(r"[^\d\n.!?…;:,]{2,80}\Z")
_NUMBERED = re.compile(r"\d{1,3}[.)]\s")
_FENCE = re.compile(r"(?:```|~~~)")
_RULE_ROW = re.compile(r"[\s|:=+-]*\Z")


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One sentence of a passage. `kind` says how it is written; `lead` introduces what follows and ends in a colon."""

    passage: Passage
    sentence: Sentence
    number: int
    kind: UnitKind

    @property
    def text(self) -> str:
        """The unit as written."""
        return self.passage.text[self.sentence.start : self.sentence.end]


def units(passage: Passage) -> tuple[Unit, ...]:
    """All units of a passage in order."""
    analysis: Analysis = analyse(passage)
    return tuple(
        Unit(passage, sentence, number, _kind(passage.text[sentence.start : sentence.end]))
        for number, sentence in enumerate(analysis.sentences)
    )


def _kind(text: str) -> UnitKind:
    if _FENCE.match(text):
        return "code"
    if _HEADING.match(text):
        return "heading"
    if text.startswith("|"):
        return "row"
    if _ITEM.match(text):
        return "item"
    if text.endswith(":"):
        return "lead"
    return "heading" if _CAPTION.match(text) else "sentence"


def is_step(of: Unit, among: Sequence[Unit]) -> bool:
    """Whether `of` is an item of a numbered list or introduces one."""
    following = among[of.number + 1] if of.kind == "lead" and of.number + 1 < len(among) else of
    return bool(following.kind == "item" and _NUMBERED.match(following.text))


def block(of: Unit, among: Sequence[Unit], most: int) -> tuple[Unit, ...]:
    """The list, table or code that `of` introduces or belongs to, its lead first, at most `most` pieces of it."""
    first = of.number
    if of.kind in ("item", "row", "code"):
        while first > 0 and among[first - 1].kind == of.kind:
            first -= 1
        if first > 0 and among[first - 1].kind == "lead":
            first -= 1
    last = first + 1
    kind = among[last].kind if among[first].kind == "lead" and last < len(among) else among[first].kind
    while last < len(among) and among[last].kind == kind and kind in ("item", "row", "code"):
        last += 1
    return tuple(among[first : min(last, first + most + 1)])


def header(of: Unit, among: Sequence[Unit]) -> tuple[Unit, ...]:
    """A table row with the header row that names its columns; a rule row (`|---|`) says nothing and is left out."""
    first = of.number
    while first > 0 and among[first - 1].kind == "row":
        first -= 1
    return tuple(unit for unit in dict.fromkeys((among[first], of)) if not _RULE_ROW.match(unit.text))

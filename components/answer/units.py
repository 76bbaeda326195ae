"""The pieces an extractive answer is made of: sentences, list items, table rows, and what belongs together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.judge.analysis import Sentence, analyse
from components.language.identifiers import codes
from components.language.marks import FENCE, HEADING, ITEM, ORDINAL
from components.turn import Passage

UnitKind = Literal["sentence", "lead", "item", "row", "code", "heading"]

_ITEM = re.compile(rf"{ITEM}\s+")
_MARKER = re.compile(rf"{ITEM}\s+|\|\s*")
_HEADING = re.compile(rf"{HEADING}\s")
# A heading that lost its mark when its short section was merged: a few words on a line, no full stop, no figures.
_CAPTION = re.compile(r"[^\d\n.!?…;:,]{2,80}\Z")
_NUMBERED = re.compile(rf"{ORDINAL}\s")
_FENCE = re.compile(FENCE)
# What opens an entry about a code: "E20 — …", "Код E20 означает …", "| Е 20 | …".
_ENTRY = re.compile(
    rf"(?:{ITEM}|\||{HEADING})?\s*(?:(?:код|ошибк|неисправност|error|code|fault|alarm)\w*\s+){{0,2}}"
    r"\W?\S+(?: \d+)?",
    re.IGNORECASE,
)
_RULE_ROW = re.compile(r"[\s|:=+-]*\Z")


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One sentence of a passage. `kind` says how it is written; `lead` introduces what follows and ends in a colon.

    `about` are the codes it speaks of: those it opens with, else those it names, else those of the entry or section
    that it stands in.
    """

    passage: Passage
    sentence: Sentence
    number: int
    kind: UnitKind
    about: frozenset[str]

    @property
    def text(self) -> str:
        """The unit as written."""
        return self.passage.text[self.sentence.start : self.sentence.end]


def units(passage: Passage) -> tuple[Unit, ...]:
    """All units of a passage in order."""
    entry = _section(passage)
    found = []
    for number, sentence in enumerate(analyse(passage).sentences):
        text = passage.text[sentence.start : sentence.end]
        kind = _kind(text)
        opening = sentence.codes if kind in ("heading", "lead") else _opening(text)
        if kind in ("heading", "lead", "sentence"):
            entry = opening or entry
        found.append(Unit(passage, sentence, number, kind, opening or sentence.codes or entry))
    return tuple(found)


def _section(passage: Passage) -> frozenset[str]:
    """The codes of the innermost heading that names any, or the title's only one."""
    for heading in reversed(passage.heading.split(" › ")):
        if named := codes(heading):
            return frozenset(named)
    titled = codes(passage.title)
    return frozenset(titled if len(titled) == 1 else ())


def _opening(text: str) -> frozenset[str]:
    opened = _ENTRY.match(text)
    return frozenset(codes(opened.group())) if opened else frozenset()


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


def plain(of: Unit) -> str:
    """The unit without its list marker or the bars of its row, on one line; code to the letter."""
    if of.kind == "code":
        return of.text
    text = _MARKER.sub("", of.text, count=1) if of.kind in ("item", "row") else of.text
    return " ".join(text.rstrip("| ").split())


def is_step(of: Unit, among: Sequence[Unit]) -> bool:
    """Whether `of` is an item of a numbered list or introduces one."""
    following = among[of.number + 1] if of.kind == "lead" and of.number + 1 < len(among) else of
    return bool(following.kind == "item" and _NUMBERED.match(following.text))


def block(of: Unit, among: Sequence[Unit]) -> tuple[Unit, ...]:
    """The list, table or code that `of` introduces or belongs to, its lead first."""
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
    return tuple(among[first:last])


def is_frame(of: Unit, among: Sequence[Unit]) -> bool:
    """Whether `of` is a table's header row or the rule below it."""
    following = among[of.number + 1] if of.number + 1 < len(among) else of
    return of.kind == "row" and bool(_RULE_ROW.match(of.text) or _RULE_ROW.match(following.text))


def header(of: Unit, among: Sequence[Unit]) -> tuple[Unit, ...]:
    """A table row with the header row that names its columns; a rule row (`|---|`) says nothing and is left out."""
    first = of.number
    while first > 0 and among[first - 1].kind == "row":
        first -= 1
    return tuple(unit for unit in dict.fromkeys((among[first], of)) if not _RULE_ROW.match(unit.text))

"""The pieces an extractive answer is made of: sentences, list items, table rows, and what belongs together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from components.judge.analysis import Sentence, analyse
from components.language.captions import HEADING_SEPARATOR, is_contents, is_question, leads_elsewhere
from components.language.identifiers import codes
from components.language.marks import FENCE, HEADING, ITEM, ORDINAL
from components.turn import Passage

UnitKind = Literal["sentence", "lead", "item", "row", "code", "heading", "debris"]

_ITEM = re.compile(rf"{ITEM}\s+")
_MARKER = re.compile(rf"{ITEM}\s+|\|\s*")
_HEADING = re.compile(rf"{HEADING}\s")
# A heading that lost its mark when its short section was merged: a few words on a line, no full stop, no figures but
# those of a name ("152-ФЗ", "IPv4").
_CAPTION = re.compile(r"(?![a-zа-яё])(?:[^\d\n.!?…;:,]|(?<=[a-zA-Zа-яА-ЯёЁ-])\d|\d(?=\d*-[a-zA-Zа-яА-ЯёЁ])){2,80}\Z")
_NUMBERED = re.compile(rf"{ORDINAL}\s")
# What a vendor's page macro left where it should have put a text, and the line that says which product a page is for.
_PLACEHOLDER = re.compile(
    rf"(?:{ITEM}\s+)?%[a-z]+\b(?!\w*%)|[^\n]*\s%(?:text|number)\b|(?:{ITEM}\s+)?\{{[{{%#]|\[?!include\b|"
    r"(?:область применения|применяется к|применимо к|applies to) ?:",
    re.IGNORECASE,
)
# "Learn more about forms.", whose link is gone.
_LEADS_ON = re.compile(
    rf"(?:{ITEM}\s+)?(?:подробнее(?: об?о?\b(?!.*(?:\bсм\b|смотр|чита|узна|описан|раздел|стат))[^.:]{{3,150}})?|"
    r"(?:(?:learn|read|see|find out) )?more(?: (?:about|on)\b[^.:]{3,150})?)\.?",
    re.IGNORECASE,
)
_ENDS = ".!?…;"
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
    """One sentence of a passage. `kind` says how it is written; `lead` introduces what follows and ends in a colon,
    `debris` is what is left of a page around its text: its list of contents, a placeholder nobody filled.

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
    passage_units: list[Unit] = []
    contents = False
    for number, sentence in enumerate(analyse(passage).sentences):
        text = passage.text[sentence.start : sentence.end]
        kind = _kind(text)
        contents = _opens_contents(kind, text) or (
            contents and _is_listed(kind, text, passage_units[-1].text if passage_units else "")
        )
        if contents or _PLACEHOLDER.match(text) or _LEADS_ON.fullmatch(text):
            kind = "debris"
        elif kind in ("sentence", "lead") and is_question(text) and _is_line(passage.text, sentence):
            kind = "heading"
        opening = sentence.codes if kind in ("heading", "lead") else _opening(text)
        if kind in ("heading", "lead", "sentence"):
            entry = opening or entry
        passage_units.append(Unit(passage, sentence, number, kind, opening or sentence.codes or entry))
    return tuple(passage_units)


def _is_line(text: str, sentence: Sentence) -> bool:
    """Whether a sentence has a line of its own."""
    return text[: sentence.start].rpartition("\n")[2].strip() == "" == text[sentence.end :].partition("\n")[0].strip()


def _opens_contents(kind: UnitKind, text: str) -> bool:
    if kind == "sentence" and text[-1] not in _ENDS:
        # "In this article, learn more about: Returns Refunds", where the list lost its form.
        return ":" in text and is_contents(text.partition(":")[0] + ":")
    return kind in ("lead", "heading") and is_contents(text.lstrip("# "))


def _is_listed(kind: UnitKind, text: str, before: str) -> bool:
    """Whether a line goes on a list of contents: its items, or its one line where the list lost its form."""
    return kind == "item" or (before.endswith(":") and text[-1] not in _ENDS and kind in ("sentence", "heading"))


def _section(passage: Passage) -> frozenset[str]:
    """The codes of the innermost heading that names any, or the title's only one."""
    for heading in reversed(passage.heading.split(HEADING_SEPARATOR)):
        if named := codes(heading):
            return frozenset(named)
    titled = codes(passage.title)
    return frozenset(titled if len(titled) == 1 else ())


def _opening(text: str) -> frozenset[str]:
    match = _ENTRY.match(text)
    return frozenset(codes(match.group())) if match else frozenset()


def _kind(text: str) -> UnitKind:
    if _FENCE.match(text):
        return "code"
    if _HEADING.match(text):
        return "heading"
    if text.startswith("|"):
        return "row"
    if _ITEM.match(text):
        return "item"
    if leads_elsewhere(text):
        return "heading"
    if text.endswith(":"):
        return "lead"
    return "heading" if _CAPTION.match(text) else "sentence"


def plain(of: Unit) -> str:
    """The unit without its list marker or the bars of its row, on one line; code to the letter."""
    if of.kind == "code":
        return of.text
    text = _MARKER.sub("", of.text, count=1) if of.kind in ("item", "row") else of.text
    return " ".join(text.rstrip("| ").split())


def bullet(of: Unit) -> str:
    """The marker that an item stands behind, and a space."""
    marker = _MARKER.match(of.text)
    return f"{marker.group().strip()} " if marker else "- "


def is_numbered(of: Unit) -> bool:
    """Whether `of` is a step of a numbered list."""
    return of.kind == "item" and bool(_NUMBERED.match(of.text))


def indent(of: Unit) -> int:
    """How far the line of `of` is indented; -1 where it does not begin a line."""
    start = of.sentence.start
    before = of.passage.text[of.passage.text.rfind("\n", 0, start) + 1 : start]
    return -1 if before.strip() else len(before)


def is_rule(of: Unit) -> bool:
    """Whether `of` is the rule below a table's header (`|---|`), which says nothing."""
    return of.kind == "row" and bool(_RULE_ROW.match(of.text))


def is_frame(of: Unit, among: Sequence[Unit]) -> bool:
    """Whether `of` is a table's header row or the rule below it."""
    following = next((unit for unit in among if unit.number == of.number + 1 and unit.passage is of.passage), of)
    return of.kind == "row" and (is_rule(of) or is_rule(following))

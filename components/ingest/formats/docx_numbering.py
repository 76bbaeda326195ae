"""The numbers and bullets of a Word file's lists, which its text does not hold."""

import re
from collections import defaultdict
from dataclasses import dataclass

from lxml import etree

from components.ingest.formats.office import attributes, local, value
from components.turn import Frozen

_MAX_DEPTH = 9
_PLACE = re.compile(r"%([1-9])")
_SIMPLE = re.compile(r"%[1-9][.)]")
_LETTERS = {
    "lowerLetter": "abcdefghijklmnopqrstuvwxyz",
    "upperLetter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЭЮЯ",
}
_ROMAN = ((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
_MAX_ROMAN = 90


@dataclass(frozen=True, slots=True)
class Mark(Frozen):
    """What stands before a paragraph of a list.

    :param label: `-` for a bullet, else the number as it is printed; empty when nothing is.
    :param depth: how many lists it is nested in.
    :param is_item: an item of a list; false for the number of a clause or heading such as 4.2.
    """

    label: str
    depth: int
    is_item: bool


@dataclass(frozen=True, slots=True)
class _Level(Frozen):
    form: str
    text: str
    start: int


class Numbering:
    """Counts through the lists of one document in reading order."""

    def __init__(self, root: etree._Element | None) -> None:
        parts = list(root) if root is not None else []
        abstract = {attributes(part).get("abstractNumId", ""): part for part in parts if local(part) == "abstractNum"}
        self._lists: dict[str, tuple[str, dict[int, _Level]]] = {}
        for part in parts:
            if local(part) == "num":
                ident = value(part, "abstractNumId")
                self._lists[attributes(part).get("numId", "")] = (ident, _levels(abstract.get(ident)))
        self.restart()

    def restart(self) -> None:
        """Begin to count anew."""
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _MAX_DEPTH)

    def mark(self, ident: str, depth: int) -> Mark | None:
        """The mark of the next paragraph of a list; None for an unknown list."""
        counter, levels = self._lists.get(ident, ("", {}))
        level = levels.get(depth)
        if level is None or depth >= _MAX_DEPTH:
            return None
        if level.form == "bullet":
            return Mark("-", depth, is_item=True)
        counts = self._counts[counter]
        counts[depth] = counts[depth] + 1 if counts[depth] else level.start
        counts[depth + 1 :] = [0] * (_MAX_DEPTH - depth - 1)
        if level.form == "none":
            return Mark("", depth, is_item=False)

        def formatted(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            of = levels.get(at, level)
            return _formatted_number(counts[at] or of.start, of.form)

        return Mark(_PLACE.sub(formatted, level.text), depth, is_item=bool(_SIMPLE.fullmatch(level.text)))


def _levels(abstract: etree._Element | None) -> dict[int, _Level]:
    levels: dict[int, _Level] = {}
    for element in abstract if abstract is not None else ():
        depth, start = attributes(element).get("ilvl", ""), value(element, "start")
        if local(element) == "lvl" and depth.isdecimal():
            first = int(start) if start.isdecimal() else 1
            levels[int(depth)] = _Level(value(element, "numFmt") or "decimal", value(element, "lvlText"), first)
    return levels


def _formatted_number(number: int, form: str) -> str:
    letters = _LETTERS.get(form, "")
    if 0 < number <= len(letters):
        return letters[number - 1]
    if form in {"lowerRoman", "upperRoman"} and 0 < number < _MAX_ROMAN:
        roman, remainder = "", number
        for size, sign in _ROMAN:
            roman, remainder = roman + sign * (remainder // size), remainder % size
        return roman if form == "upperRoman" else roman.lower()
    return str(number)

"""What the styles of a Word file make of its paragraphs and runs."""

import re
from dataclasses import dataclass, replace

from lxml import etree

from components.ingest.formats.office import attributes, child, is_on, local, value
from components.turn import Frozen

_HEADING = re.compile(r"(?:heading|заголовок)\s*([1-9])")
_TITLES = frozenset({"title", "название"})
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Style(Frozen):
    """One style, what it inherits included.

    :param level: of a heading, 1–6; 0 for none.
    :param numbering: (id, level) of the list that its paragraphs belong to.
    """

    level: int = 0
    is_title: bool = False
    hidden: bool = False
    bold: bool = False
    numbering: tuple[str, int] | None = None


class Styles:
    """The styles of one document by their ids."""

    def __init__(self, root: etree._Element | None) -> None:
        self._elements = {
            attributes(element).get("styleId", ""): element
            for element in (root if root is not None else ())
            if local(element) == "style"
        }
        self._resolved_styles: dict[str, Style] = {"": Style()}

    def get(self, style_id: str) -> Style:
        """A style by its id; the plain one for an unknown id."""
        style = self._resolved_styles.get(style_id)
        if style is None:
            # Noted before its ancestors are asked: a style may claim to be its own ancestor.
            self._resolved_styles[style_id] = Style()
            style = self._resolved_styles[style_id] = self._resolved(style_id)
        return style

    def _resolved(self, style_id: str) -> Style:
        element = self._elements.get(style_id)
        if element is None:
            return Style()
        inherited = self.get(value(element, "basedOn"))
        name = value(element, "name").casefold()
        heading = _HEADING.fullmatch(name.strip())
        level = min(int(heading[1]), _MAX_DEPTH) if heading else outline_level(element) or inherited.level
        run = child(element, "rPr")
        return replace(
            inherited,
            level=level,
            is_title=name in _TITLES or inherited.is_title,
            hidden=is_on(run, "vanish") or inherited.hidden,
            bold=is_on(run, "b") if child(run, "b") is not None else inherited.bold,
            numbering=numbering_of(element) or inherited.numbering,
        )


def outline_level(element: etree._Element) -> int:
    """The heading level that a style or paragraph is given outright, 0 for none."""
    level = value(element, "pPr", "outlineLvl")
    return int(level) + 1 if level.isdecimal() and int(level) < _MAX_DEPTH else 0


def numbering_of(element: etree._Element) -> tuple[str, int] | None:
    """The list that a style or paragraph is put in outright. Id 0 takes it out of any."""
    numbering = child(element, "pPr", "numPr")
    if numbering is None or not (ident := value(numbering, "numId")):
        return None
    level = value(numbering, "ilvl")
    return ident, int(level) if level.isdecimal() else 0

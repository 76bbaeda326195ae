"""Word files (DOCX): headings, lists, tables, links and notes as Markdown.

Read from the XML itself: a tree of Python objects takes a hundred times the file, and libraries that build one show
hidden text or leave out insertions, content controls, list numbers and notes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from components.ingest.formats import properties, writing
from components.ingest.formats.docx_numbering import Numbering
from components.ingest.formats.docx_styles import Style, Styles, numbering_of, outline_level
from components.ingest.formats.office import Package, attributes, child, is_on, local, value
from components.ingest.formats.parsed import FileFlag, Parsed
from components.turn import Frozen

_LINE = "\v"
_TRANSPARENT = frozenset("sdt sdtContent ins moveTo smartTag customXml fldSimple AlternateContent Choice".split())
"""Elements that only stand around others."""
_CHARACTERS = {"tab": " ", "br": _LINE, "cr": _LINE, "noBreakHyphen": "-", "ptab": " "}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_DEPTH_PAD = 3
_MAX_HEADING_LENGTH = 120
_ADDRESS = re.compile(r"(?:https?://|mailto:|tel:)[^\s<>()\\]+")


@dataclass(frozen=True, slots=True)
class _Paragraph(Frozen):
    """Lines of Markdown with what their style and list say of them."""

    lines: tuple[str, ...]
    style: Style
    level: int
    numbering: tuple[str, int] | None
    bold: bool


def read(data: bytes) -> Parsed:
    """The body of a document; headers, footers, comments, pictures and deleted text are left out."""
    package = Package(data)
    reader = _Reader(package)
    body = child(package.main, "body")
    blocks = list(reader.blocks(body, bold_is_heading=False)) if body is not None else []
    if body is not None and not any(block.startswith("#") for block in blocks):
        # Nobody used the styles for headings, so a short bold paragraph is one.
        reader = _Reader(package)
        blocks = list(reader.blocks(body, bold_is_heading=True))
    title, meta = properties.of_office(data)
    flags: tuple[FileFlag, ...] = ("hidden_text",) if reader.hidden else ()
    return Parsed(reader.title or title, writing.document(blocks), meta=meta, flags=flags)


class _Reader:
    """Walks through one document in reading order.

    :ivar title: the text of the paragraph in the style of titles, if any.
    :ivar hidden: whether text was left out because its author had hidden it.
    """

    def __init__(self, package: Package) -> None:
        self._links = package.links
        self._styles = Styles(package.related("styles"))
        self._numbering = Numbering(package.related("numbering"))
        self._notes = {kind: _notes(package.related(part)) for kind, part in _NOTES.items()}
        self.title = ""
        self.hidden = False

    def blocks(self, parent: etree._Element, *, bold_is_heading: bool) -> Iterator[str]:
        for element in parent:
            name = local(element)
            if name == "p":
                yield from self._block(self._paragraph(element), bold_is_heading=bold_is_heading)
                for box in _text_boxes(element):
                    yield from self.blocks(box, bold_is_heading=False)
            elif name == "tbl":
                yield from self._table(element)
            elif name in _TRANSPARENT:
                yield from self.blocks(element, bold_is_heading=bold_is_heading)

    def _block(self, paragraph: _Paragraph, *, bold_is_heading: bool) -> Iterator[str]:
        line = " ".join(paragraph.lines)
        mark = self._numbering.mark(*paragraph.numbering) if paragraph.numbering and line else None
        level = paragraph.level
        if not level and bold_is_heading and paragraph.bold and mark is None:
            level = 2 if len(line) <= _MAX_HEADING_LENGTH and not line.endswith((".", ":", ";", ",")) else 0
        if not line:
            return
        if paragraph.style.is_title and not self.title:
            self.title = re.sub(r"\\(.)", r"\1", line)
            level = 1
        if level:
            yield writing.titled(f"{mark.label} {line}" if mark and mark.label not in {"", "-"} else line, level)
        elif mark is None or not mark.label:
            yield "  \n".join(map(writing.opening, paragraph.lines))
        elif mark.is_item:
            pad = " " * (_DEPTH_PAD * mark.depth)
            yield writing.indented("\n".join(paragraph.lines), pad + " " * _DEPTH_PAD, f"{pad}{mark.label} ")
        else:
            # The number of a clause ("4.2") is what people refer to it by.
            yield writing.opening(f"{mark.label} {line}")

    def _paragraph(self, element: etree._Element) -> _Paragraph:
        style = self._styles.get(value(element, "pPr", "pStyle"))
        runs = list(self._runs(element, style))
        text = "".join(text for text, _ in runs)
        lines = tuple(" ".join(line.split()) for line in text.split(_LINE))
        bold = all(strong for text, strong in runs if text.strip()) and bool(text.strip())
        numbering = numbering_of(element) or style.numbering
        return _Paragraph(tuple(filter(None, lines)), style, outline_level(element) or style.level, numbering, bold)

    def _runs(self, parent: etree._Element, style: Style) -> Iterator[tuple[str, bool]]:
        """The visible text of a paragraph in pieces, each with whether it is bold."""
        for element in parent:
            name = local(element)
            if name == "r":
                run_style = self._styles.get(value(element, "rPr", "rStyle"))
                text = "".join(self._characters(element))
                if is_on(element, "rPr", "vanish") or run_style.hidden or style.hidden or _is_tiny(element):
                    self.hidden = self.hidden or bool(text.strip())
                    continue
                strong = child(element, "rPr", "b")
                yield text, is_on(element, "rPr", "b") if strong is not None else run_style.bold or style.bold
            elif name == "hyperlink":
                yield self._link(element, style), False
            elif name in _TRANSPARENT:
                yield from self._runs(element, style)

    def _characters(self, run: etree._Element) -> Iterator[str]:
        for element in run:
            name = local(element)
            if name == "t":
                yield writing.fragment(element.text or "")
            elif name in _NOTES:
                note = self._notes[name].get(attributes(element).get("id", ""), "")
                yield f" ({writing.inline(note)})" if note else ""
            else:
                yield _CHARACTERS.get(name, "")

    def _link(self, element: etree._Element, style: Style) -> str:
        words = "".join(text for text, _ in self._runs(element, style))
        target = self._links.get(attributes(element).get("id", ""), "")
        return f"[{words.strip()}]({target})" if words.strip() and _ADDRESS.fullmatch(target) else words

    def _table(self, table: etree._Element) -> Iterator[str]:
        elements = [list(_inside(row, "tc")) for row in _inside(table, "tr")]
        if max(map(len, elements), default=0) < 2:
            # A frame around text, not a table.
            for cell in (cell for row in elements for cell in row):
                yield from self.blocks(cell, bold_is_heading=False)
            return
        rows: list[list[str]] = []
        for row in elements:
            above = rows[-1] if rows else []
            cells: list[str] = []
            for cell in row:
                merged = child(cell, "tcPr", "vMerge")
                goes_on = merged is not None and attributes(merged).get("val") != "restart"
                # A cell over several rows stands in each of them, so that every row says all it means.
                text = above[len(cells)] if goes_on and len(cells) < len(above) else self._cell(cell)
                span = value(cell, "tcPr", "gridSpan")
                cells += [text, *[""] * (min(int(span), 100) - 1 if span.isdecimal() else 0)]
            rows.append(cells)
        yield writing.table(rows)

    def _cell(self, cell: etree._Element) -> str:
        parts: list[str] = []
        for element in cell.iterdescendants():
            if local(element) == "p" and next(element.iterancestors("{*}tc"), None) is not None:
                paragraph = self._paragraph(element)
                line = " ".join(paragraph.lines)
                mark = self._numbering.mark(*paragraph.numbering) if paragraph.numbering and line else None
                parts.append(f"{mark.label} {line}" if mark else line)
        return " ".join(filter(None, parts))


def _inside(parent: etree._Element, name: str) -> Iterator[etree._Element]:
    """The rows of a table or the cells of a row, content controls around them or not."""
    for element in parent:
        if local(element) == name:
            yield element
        elif local(element) in _TRANSPARENT:
            yield from _inside(element, name)


def _text_boxes(paragraph: etree._Element) -> Iterator[etree._Element]:
    for box in paragraph.iterdescendants("{*}txbxContent"):
        # Every box is there twice, the second time for programs older than 2010.
        if next(box.iterancestors("{*}Fallback"), None) is None:
            yield box


def _is_tiny(run: etree._Element) -> bool:
    half_points = value(run, "rPr", "sz")
    return half_points.isdecimal() and int(half_points) <= 4


def _notes(root: etree._Element | None) -> dict[str, str]:
    """The texts of foot- or endnotes by their ids."""
    notes: dict[str, str] = {}
    for note in root if root is not None else ():
        values = attributes(note)
        if "type" not in values:
            texts = (text.text or "" for text in note.iterdescendants("{*}t"))
            notes[values.get("id", "")] = " ".join("".join(texts).split())
    return notes

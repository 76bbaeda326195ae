"""Word files (DOCX): headings, lists, tables, links and notes as Markdown.

Read from the XML itself. mammoth (1.11), also inside markitdown, took sixty times as long over 50 articles, begins a
numbered list again after every paragraph in between, drops the numbers of clauses ("4.2"), and returns hidden text.
"""

import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO

from lxml import etree

from components.ingest.formats import properties, writing
from components.ingest.formats.parsed import FileFlag, Parsed
from components.turn import Frozen
from tenants.core.errors import Invalid

# Entities are never resolved and nothing is fetched; archives with a DOCTYPE are refused before they get here.
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
_LINE = "\v"
_TRANSPARENT = frozenset("sdt sdtContent ins moveTo smartTag customXml fldSimple AlternateContent Choice".split())
"""Wrapper elements without content except their children."""
_CHARACTERS = {"tab": " ", "br": _LINE, "cr": _LINE, "noBreakHyphen": "-", "ptab": " "}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_DEPTH_PAD = 3
_MAX_DEPTH = 9
_MAX_HEADING_LEVEL = 6
_MAX_HEADING_LENGTH = 120
_MAX_SPAN = 100
_TINY = 4
"""Font size in half points, below which text is unreadable."""
_ADDRESS = re.compile(r"(?:https?://|mailto:|tel:)[^\s<>()\\]+")
_HEADING = re.compile(r"(?:heading|заголовок)\s*([1-9])")
_TITLES = frozenset({"title", "название"})
_PLACE = re.compile(r"%([1-9])")
_SIMPLE = re.compile(r"%[1-9][.)]")
_LETTERS = {
    "lowerLetter": "abcdefghijklmnopqrstuvwxyz",
    "upperLetter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЭЮЯ",
}


@dataclass(frozen=True, slots=True)
class _Style(Frozen):
    """A style with all it inherits.

    :param level: of a heading, 1–6; 0 for none.
    :param numbering: (id, level) of the list that its paragraphs belong to.
    """

    level: int = 0
    is_title: bool = False
    hidden: bool = False
    bold: bool = False
    numbering: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class _Paragraph(Frozen):
    """Lines of Markdown with what their style and list say of them.

    :param label: `-` for a bullet, else the printed number; empty without one.
    :param depth: how many lists it is nested in.
    :param is_item: an item of a list; false for the number of a clause or heading such as 4.2.
    """

    lines: tuple[str, ...]
    level: int
    is_title: bool
    bold: bool
    label: str
    depth: int
    is_item: bool


def read(data: bytes) -> Parsed:
    """Return the body of a document; headers, footers, comments, pictures and deleted text are left out."""
    reader = _Reader(data)
    blocks = list(reader.blocks(reader.body, bold_is_heading=False))
    if not any(block.startswith("#") for block in blocks):
        # Without heading styles, treat short bold paragraphs as headings.
        reader = _Reader(data)
        blocks = list(reader.blocks(reader.body, bold_is_heading=True))
    title, meta = properties.of_office(data)
    flags: tuple[FileFlag, ...] = ("hidden_text",) if reader.hidden else ()
    return Parsed(reader.title or title, writing.document(blocks), meta=meta, flags=flags)


class _Reader:
    """Walks through one document in reading order.

    :ivar title: the text of the paragraph in the style of titles, if any.
    :ivar hidden: whether text was left out because its author had hidden it.
    """

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(BytesIO(data))
        main = next((target for kind, target, _ in self._relations("") if kind == "officeDocument"), None)
        if main is None:
            raise Invalid("file_damaged")
        related: dict[str, str] = {}
        self._links: dict[str, str] = {}
        for kind, target, ident in self._relations(main):
            if kind == "hyperlink":
                self._links[ident] = target
            else:
                related.setdefault(kind, target)
        parts = {kind: self._xml(related.get(kind, "")) for kind in ("styles", "numbering", *_NOTES.values())}
        self._styles = {_attribute(part, "styleId"): part for part in parts["styles"] if _local(part) == "style"}
        self._resolved = {"": _Style()}
        self._lists = _Lists(parts["numbering"])
        self._notes = {name: _notes(parts[kind]) for name, kind in _NOTES.items()}
        body = self._xml(main).find("{*}body")
        self.body = body if body is not None else etree.Element("body")
        self.title = ""
        self.hidden = False

    def _xml(self, name: str) -> etree._Element:
        """Return a part of the file; a missing one is empty."""
        if name not in self._archive.namelist():
            return etree.Element("none")
        return etree.fromstring(self._archive.read(name), _PARSER)

    def _relations(self, part: str) -> Iterator[tuple[str, str, str]]:
        """Yield kind, target and id of each relation of a part; the package itself has those of the empty name."""
        folder, name = posixpath.split(part)
        for relation in self._xml(posixpath.join(folder, "_rels", f"{name}.rels")):
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join(f"/{folder}", target)).lstrip("/")
            yield relation.get("Type", "").rsplit("/", 1)[-1], target, relation.get("Id", "")

    def blocks(self, parent: etree._Element, *, bold_is_heading: bool) -> Iterator[str]:
        """Yield the blocks of Markdown inside an element."""
        for element in parent:
            name = _local(element)
            if name == "p":
                yield from self._block(self._paragraph(element), bold_is_heading=bold_is_heading)
                for box in element.iterdescendants("{*}txbxContent"):
                    # Every box is stored twice, the second copy for programs from before 2010.
                    if next(box.iterancestors("{*}Fallback"), None) is None:
                        yield from self.blocks(box, bold_is_heading=False)
            elif name == "tbl":
                yield from self._table(element)
            elif name in _TRANSPARENT:
                yield from self.blocks(element, bold_is_heading=bold_is_heading)

    def _block(self, paragraph: _Paragraph, *, bold_is_heading: bool) -> Iterator[str]:
        line, label, level = " ".join(paragraph.lines), paragraph.label, paragraph.level
        if not line:
            return
        if bold_is_heading and paragraph.bold and not level and not label:
            level = 2 if len(line) <= _MAX_HEADING_LENGTH and not line.endswith((".", ":", ";", ",")) else 0
        if paragraph.is_title and not self.title:
            self.title = re.sub(r"\\(.)", r"\1", line)
            level = 1
        if level:
            yield writing.titled(f"{label} {line}" if label not in {"", "-"} else line, level)
        elif not label:
            yield "  \n".join(map(writing.opening, paragraph.lines))
        elif paragraph.is_item:
            pad = " " * (_DEPTH_PAD * paragraph.depth)
            yield writing.indented("\n".join(paragraph.lines), pad + " " * _DEPTH_PAD, f"{pad}{label} ")
        else:
            # The number of a clause ("4.2") is what people refer to it by.
            yield writing.opening(f"{label} {line}")

    def _paragraph(self, element: etree._Element) -> _Paragraph:
        style = self._style(_value(element, "pPr/pStyle"))
        runs = list(self._runs(element, style))
        text = "".join(text for text, _ in runs)
        lines = tuple(filter(None, (" ".join(line.split()) for line in text.split(_LINE))))
        bold = all(strong for text, strong in runs if text.strip()) and bool(text.strip())
        numbering = _numbering(element) or style.numbering
        mark = self._lists.mark(*numbering) if numbering and lines else ("", 0, False)
        return _Paragraph(lines, _outline(element) or style.level, style.is_title, bold, *mark)

    def _style(self, style_id: str) -> _Style:
        """Return a style by its id; the plain one for an unknown id."""
        if style_id not in self._resolved:
            # Noted before its ancestors are asked: a style may claim to be its own ancestor.
            self._resolved[style_id] = _Style()
            element = self._styles.get(style_id)
            if element is not None:
                inherited = self._style(_value(element, "basedOn"))
                name = _value(element, "name").casefold().strip()
                heading = _HEADING.fullmatch(name)
                level = min(int(heading[1]), _MAX_HEADING_LEVEL) if heading else _outline(element)
                self._resolved[style_id] = replace(
                    inherited,
                    level=level or inherited.level,
                    is_title=name in _TITLES or inherited.is_title,
                    hidden=_is_on(element, "rPr/vanish", default=inherited.hidden),
                    bold=_is_on(element, "rPr/b", default=inherited.bold),
                    numbering=_numbering(element) or inherited.numbering,
                )
        return self._resolved[style_id]

    def _runs(self, parent: etree._Element, style: _Style) -> Iterator[tuple[str, bool]]:
        """Yield the visible text of a paragraph in pieces, each with whether it is bold."""
        for element in parent:
            name = _local(element)
            if name == "r":
                run_style = self._style(_value(element, "rPr/rStyle"))
                text = "".join(self._characters(element))
                size = _value(element, "rPr/sz")
                tiny = size.isdecimal() and int(size) <= _TINY
                if tiny or run_style.hidden or style.hidden or _is_on(element, "rPr/vanish"):
                    self.hidden = self.hidden or bool(text.strip())
                    continue
                yield text, _is_on(element, "rPr/b", default=run_style.bold or style.bold)
            elif name == "hyperlink":
                words = "".join(text for text, _ in self._runs(element, style))
                target = self._links.get(_attribute(element, "id"), "")
                link = words.strip() and _ADDRESS.fullmatch(target)
                yield f"[{words.strip()}]({target})" if link else words, False
            elif name in _TRANSPARENT:
                yield from self._runs(element, style)

    def _characters(self, run: etree._Element) -> Iterator[str]:
        for element in run:
            name = _local(element)
            if name == "t":
                yield writing.fragment(element.text or "")
            elif name in _NOTES:
                note = self._notes[name].get(_attribute(element, "id"), "")
                yield f" ({writing.inline(note)})" if note else ""
            else:
                yield _CHARACTERS.get(name, "")

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
                merged = cell.find("{*}tcPr/{*}vMerge")
                goes_on = merged is not None and _attribute(merged, "val") != "restart"
                # Repeat a cell that spans several rows in each of them, so that every row is complete.
                text = above[len(cells)] if goes_on and len(cells) < len(above) else self._cell(cell)
                span = _value(cell, "tcPr/gridSpan")
                cells += [text, *[""] * (min(int(span), _MAX_SPAN) - 1 if span.isdecimal() else 0)]
            rows.append(cells)
        yield writing.table(rows)

    def _cell(self, cell: etree._Element) -> str:
        paragraphs = map(self._paragraph, cell.iterdescendants("{*}p"))
        return " ".join(" ".join(filter(None, (part.label, *part.lines))) for part in paragraphs if part.lines)


class _Lists:
    """Counts through the lists of one document in reading order; its text does not hold their numbers."""

    def __init__(self, numbering: etree._Element) -> None:
        abstract = {_attribute(part, "abstractNumId"): part for part in numbering if _local(part) == "abstractNum"}
        self._lists: dict[str, tuple[str, dict[str, etree._Element]]] = {}
        for part in numbering:
            if _local(part) == "num":
                ident = _value(part, "abstractNumId")
                levels = {
                    _attribute(level, "ilvl"): level for level in abstract.get(ident, ()) if _local(level) == "lvl"
                }
                self._lists[_attribute(part, "numId")] = (ident, levels)
        self._counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _MAX_DEPTH)

    def mark(self, ident: str, depth: int) -> tuple[str, int, bool]:
        """Return label, depth and whether it is an item for the next paragraph of a list."""
        counter, levels = self._lists.get(ident, ("", {}))
        level = levels.get(str(depth))
        if level is None or depth >= _MAX_DEPTH or _value(level, "numFmt") == "bullet":
            return ("-" if level is not None and depth < _MAX_DEPTH else ""), depth, True
        counts = self._counts[counter]
        counts[depth] = counts[depth] + 1 if counts[depth] else _start(level)
        counts[depth + 1 :] = [0] * (_MAX_DEPTH - depth - 1)
        pattern = "" if _value(level, "numFmt") == "none" else _value(level, "lvlText")

        def formatted(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            of = levels.get(str(at), level)
            return _formatted(counts[at] or _start(of), _value(of, "numFmt"))

        return _PLACE.sub(formatted, pattern), depth, bool(_SIMPLE.fullmatch(pattern))


def _start(level: etree._Element) -> int:
    start = _value(level, "start")
    return int(start) if start.isdecimal() and len(start) < 9 else 1


def _formatted(number: int, form: str) -> str:
    letters = _LETTERS.get(form, "")
    if 0 < number <= len(letters):
        return letters[number - 1]
    if form in {"lowerRoman", "upperRoman"} and 0 < number < 40:
        roman = "X" * (number // 10) + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[number % 10]
        return roman if form == "upperRoman" else roman.lower()
    return str(number)


def _inside(parent: etree._Element, name: str) -> Iterator[etree._Element]:
    """Yield the rows of a table or the cells of a row, content controls around them or not."""
    for element in parent:
        if _local(element) == name:
            yield element
        elif _local(element) in _TRANSPARENT:
            yield from _inside(element, name)


def _notes(root: etree._Element) -> dict[str, str]:
    """Return the texts of foot- or endnotes by their ids."""
    notes: dict[str, str] = {}
    for note in root:
        if not _attribute(note, "type"):
            texts = (text.text or "" for text in note.iterdescendants("{*}t"))
            notes[_attribute(note, "id")] = " ".join("".join(texts).split())
    return notes


def _outline(element: etree._Element) -> int:
    """Return the heading level that a style or paragraph is given outright, 0 for none."""
    level = _value(element, "pPr/outlineLvl")
    return int(level) + 1 if level.isdecimal() and int(level) < _MAX_HEADING_LEVEL else 0


def _numbering(element: etree._Element) -> tuple[str, int] | None:
    """Return the list that a style or paragraph is put in outright. Id 0 takes it out of any."""
    ident, level = _value(element, "pPr/numPr/numId"), _value(element, "pPr/numPr/ilvl")
    return (ident, int(level) if level.isdecimal() and len(level) < 3 else 0) if ident else None


def _local(element: etree._Element) -> str:
    """Return an element's name without its namespace, of which there are two (transitional, strict)."""
    return element.tag.rpartition("}")[2]


def _attribute(element: etree._Element, name: str) -> str:
    return next((str(value) for key, value in element.attrib.items() if str(key).rpartition("}")[2] == name), "")


def _value(element: etree._Element, path: str) -> str:
    """Return the `val` of the element along a path of names; empty when it is missing."""
    found = element.find("/".join(f"{{*}}{name}" for name in path.split("/")))
    return _attribute(found, "val") if found is not None else ""


def _is_on(element: etree._Element, path: str, *, default: bool = False) -> bool:
    """Return whether a switch such as `b` or `vanish` is on; `default` when it is not there."""
    if element.find("/".join(f"{{*}}{name}" for name in path.split("/"))) is None:
        return default
    return _value(element, path).lower() not in {"0", "false", "off", "none"}

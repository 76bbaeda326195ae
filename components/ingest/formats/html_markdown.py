"""An HTML tree written as Markdown."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from lxml import etree

from components.ingest.formats import writing

_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])",
    re.IGNORECASE,
)
_BLOCKS = frozenset(
    "address article blockquote body caption center dd details div dl dt fieldset figcaption figure footer h1 h2 h3 h4 "
    "h5 h6 header hgroup hr html legend li main ol p pre section summary table tbody td tfoot th thead tr ul".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_FOLLOWED = frozenset({"http", "https", "mailto", "tel"})
_BREAK = "\v"
_MAX_SPAN = 100
_SUMMARY_LEVEL = 4
"""Of the question in a fold-out section: below the headings of a page."""
_ICON = re.compile(r"!\[[^\[\]]*\]\(#\)")
_PICTURE = re.compile(r"(?:\A|(?<=[.!?…:;]))(?:\s*!\[[^\[\]]*\]\(#\))+")
"""A picture that begins a line or follows a sentence: a screenshot. One within a sentence is an icon to be named."""
_ICON_CLASS = re.compile(r"(?:\A|[\s_-])(?:icon|fa[bsrl]?|material-icons|glyphicon)(?:\Z|[\s_-])", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:language|lang|highlight)-([\w+#-]{1,20})")


def is_hidden(element: etree._Element) -> bool:
    """Whether a page says of an element itself that it is not shown."""
    return element.get("hidden", "until-found") != "until-found" or bool(_HIDING.search(element.get("style", "")))


def text_of(element: etree._Element) -> str:
    """All text inside of an element, as it stands there."""
    return "".join(map(str, element.itertext()))


def icon_name(element: etree._Element) -> str:
    """What an icon or a button is called, by what a page tells those who cannot see it."""
    titles = (text_of(title) for title in element.iter("title"))
    names = (element.get("aria-label"), element.get("alt"), element.get("title"), *titles)
    name = next((name for name in names if name and name.strip()), "")
    return "" if is_hidden(element) else " ".join(re.sub(r"[\[\]\\]", " ", name).split())


class Writer:
    """Writes elements as blocks of Markdown.

    :param base: the address that relative links are resolved against; empty: they become their text.
    """

    def __init__(self, base: str = "") -> None:
        self._base = base

    def document(self, root: etree._Element) -> str:
        """The whole tree."""
        return writing.document(self._blocks(root))

    def _blocks(self, parent: etree._Element) -> Iterator[str]:
        """The blocks of what is inside of an element; text that stands between blocks is a paragraph."""
        run = [_safe(parent.text)]
        for child in parent:
            if self._is_block(child):
                yield from _paragraphs(run)
                run = []
                yield from self._block(child)
            else:
                run.append(self._inline(child))
            run.append(_safe(child.tail))
        yield from _paragraphs(run)

    def _is_block(self, element: etree._Element) -> bool:
        return element.tag in _BLOCKS or any(inner.tag in _BLOCKS for inner in element.iterdescendants())

    def _block(self, element: etree._Element) -> Iterator[str]:
        tag = str(element.tag)
        if tag in _HEADINGS:
            yield writing.titled(self._line(element), _HEADINGS[tag])
        elif tag == "summary":
            yield writing.titled(self._line(element), _SUMMARY_LEVEL)
        elif tag in {"ul", "ol"}:
            yield from self._list(element)
        elif tag == "dl":
            yield from self._definitions(element)
        elif tag == "pre":
            yield writing.fenced(text_of(element), _language(element))
        elif tag == "table":
            yield from self._table(element)
        elif tag == "blockquote":
            yield from ("\n".join(f"> {line}" for line in block.split("\n")) for block in self._blocks(element))
        elif tag != "hr":
            yield from self._blocks(element)

    def _list(self, element: etree._Element) -> Iterator[str]:
        number = int(start) if (start := element.get("start", "1")).isdecimal() and len(start) < 9 else 1
        for item in element:
            marker = f"{number}. " if element.tag == "ol" else "- "
            blocks = list(self._block(item) if item.tag in {"ul", "ol"} else self._blocks(item))
            if not blocks:
                continue
            number += 1
            if item.tag in {"ul", "ol"}:
                yield from (writing.indented(block, "  ") for block in blocks)
            else:
                yield writing.indented(writing.document(_flattened(blocks)), " " * len(marker), marker)

    def _definitions(self, element: etree._Element) -> Iterator[str]:
        term = ""
        for child in element.iter("dt", "dd"):
            if child.tag == "dt":
                term = self._line(child)
            else:
                text = writing.document(_flattened(list(self._blocks(child))))
                yield writing.indented(f"{term}: {text}" if term else text, "  ", "- ")

    def _table(self, table: etree._Element) -> Iterator[str]:
        rows = [row for row in table.iter("tr") if next(row.iterancestors("table"), None) is table]
        cells = [[cell for cell in row if cell.tag in {"td", "th"}] for row in rows]
        width = max(map(len, cells), default=0)
        nested = any(next(cell.iter("table", "h1", "h2", "h3"), None) is not None for row in cells for cell in row)
        if nested or width < 2 or table.get("role") == "presentation":
            # A table for layout only: what is in its cells stands on its own.
            yield from (block for row in cells for cell in row for block in self._blocks(cell))
            return
        caption = next((self._line(element) for element in table.iter("caption")), "")
        if caption:
            yield caption
        yield writing.table(self._grid(cells))

    def _grid(self, rows: list[list[etree._Element]]) -> list[list[str]]:
        """Rows of cells. One that spans several rows stands in each of them, so that every row says all it means."""
        grid: list[list[str]] = []
        spanned: dict[int, tuple[int, str]] = {}
        for row in rows:
            cells: list[str] = []
            waiting = iter(row)
            while True:
                rows_left, text = spanned.get(len(cells), (0, ""))
                if rows_left:
                    spanned[len(cells)] = (rows_left - 1, text)
                    cells.append(text)
                    continue
                cell = next(waiting, None)
                if cell is None:
                    break
                text = " ".join(part for block in self._blocks(cell) for part in block.split("\n"))
                if (down := _span(cell, "rowspan")) > 1:
                    spanned[len(cells)] = (down - 1, text)
                cells += [text, *[""] * (_span(cell, "colspan") - 1)]
            grid.append(cells)
        return grid

    def _line(self, element: etree._Element) -> str:
        parts = [_safe(element.text)]
        for child in element:
            parts += [self._inline(child), _safe(child.tail)]
        return " ".join(_ICON.sub("", "".join(parts).replace(_BREAK, " ")).split())

    def _inline(self, element: etree._Element) -> str:
        if element.tag == "br":
            return _BREAK
        if _is_icon(element):
            return f"![{_safe(icon_name(element))}](#)"
        if element.tag in {"code", "kbd", "samp", "tt"}:
            return _code(text_of(element))
        if element.tag == "a" and (address := self._address(element.get("href", ""))):
            words = self._line(element)
            return f"[{words}]({address})" if words else ""
        parts = [_safe(element.text)]
        for child in element:
            parts += [self._inline(child), _safe(child.tail)]
        return "".join(parts)

    def _address(self, href: str) -> str:
        try:
            address = urljoin(self._base, href.strip())
            followed = urlsplit(address).scheme in _FOLLOWED
        except ValueError:
            return ""
        return re.sub(r"[\s<>()\\]", lambda match: f"%{ord(match[0]):02X}", address) if followed else ""


def _is_icon(element: etree._Element) -> bool:
    empty = element.tag in {"i", "span"} and not text_of(element).strip()
    return element.tag == "img" or (empty and _ICON_CLASS.search(element.get("class", "")) is not None)


def _safe(text: str | None) -> str:
    return writing.fragment(text) if text else ""


def _paragraphs(run: list[str]) -> Iterator[str]:
    """Text and inline elements as paragraphs. A line break stays one, two in a row part paragraphs."""
    lines: list[str] = []
    for line in [*("".join(run).split(_BREAK)), ""]:
        words = " ".join(_PICTURE.sub("", line.strip()).split())
        if words:
            lines.append(writing.opening(words))
        elif lines:
            yield "  \n".join(lines)
            lines = []


def _flattened(blocks: list[str]) -> Iterator[str]:
    """Blocks that may stand in a list item: a heading is a line of it."""
    return (re.sub(r"^#{1,6} ", "", block) for block in blocks)


def _code(text: str) -> str:
    words = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{pad}{words}{pad}{fence}" if words else ""


def _language(pre: etree._Element) -> str:
    names = " ".join(element.get("class", "") for element in (pre, *pre.iter("code")))
    match = _LANGUAGE.search(names)
    return match[1] if match else ""


def _span(cell: etree._Element, name: str) -> int:
    number = cell.get(name, "1").strip()
    return min(int(number), _MAX_SPAN) if number.isdecimal() and len(number) < 6 else 1

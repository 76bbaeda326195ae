"""The lines of PDF pages as Markdown: headings by the size and weight of their letters, paragraphs, lists, tables."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from components.ingest.formats import writing
from components.turn import Frozen

HYPHEN = "\u00ad"
"""End of a line that splits a word."""

_LARGER = 1.12
"""Font size of a heading relative to the text."""
_MAX_DEPTH = 4
_MAX_HEADING_LENGTH = 150
_FARTHER = 1.45
"""Spacing of paragraphs relative to that of lines."""
_SHORT = 0.8
"""Share of the longest lines' end before which the last line of a paragraph ends."""
_EDGE = 0.1
"""Share of a page at its top and bottom that holds running headers and page numbers."""
_MIN_REPEATED = 3
_ALIGNED = 4.0
_PAGE_NUMBER = re.compile(r"\W*#\W*")
_BULLET = re.compile(r"[•‣⁃∙▪▫●○◦■□◆➢➤✓✔❖\uf0b7\uf0a7\uf0d8\uf0fc·–—-]\s+(?=\S)")
_NUMBER = re.compile(r"(?:\d{1,2}|[a-zа-я])[.)]\s+(?=\S)")
_ENDED = re.compile(r"[.!?…:;,]\W*$")


@dataclass(frozen=True, slots=True)
class Line(Frozen):
    """Words on one line without a wide gap between them; places in points from the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float
    bold: bool


@dataclass(frozen=True, slots=True)
class Table(Frozen):
    """A table, or its part on one page, with the places where its columns begin."""

    rows: Sequence[Sequence[str]]
    columns: Sequence[float]


@dataclass(slots=True)
class Page:
    """The lines and tables of one page."""

    number: int
    height: float
    lines: list[Line | Table]


def join(lines: Iterable[str]) -> str:
    """Return lines as running text, a word that was parted at the end of one made whole."""
    text = ""
    for line in lines:
        parted = text.endswith((HYPHEN, "-")) and text[-2:-1].isalpha() and line[:1].islower()
        text = text[:-1] + line if parted else f"{text} {line}".lstrip()
    return text.replace(HYPHEN, "-")


def document_text(pages: Sequence[Page]) -> str:
    """Return the pages as one Markdown text, a mark before the first block of each."""
    _leave_out_running(pages)
    _join_tables(pages)
    sizes: Counter[float] = Counter()
    for line in (line for page in pages for line in page.lines if isinstance(line, Line)):
        sizes[_rounded(line.size)] += sum(map(str.isalpha, line.text))
    body = max(sizes, key=lambda size: sizes[size], default=0)
    larger = sorted((size for size, letters in sizes.items() if letters and size >= _LARGER * body), reverse=True)
    levels = {size: min(at, _MAX_DEPTH) for at, size in enumerate(larger, start=1)}
    blocks: list[str] = []
    for page in pages:
        on_page = list(_blocks(page, body, levels))
        if blocks and on_page and _continues_paragraph(blocks[-1], on_page[0]):
            blocks[-1] = join([blocks[-1], on_page.pop(0)])
        blocks += [writing.page_mark(page.number), *on_page]
    return writing.document(blocks)


def _continues_paragraph(last: str, first: str) -> bool:
    """Return whether a paragraph at the end of a page goes on at the top of the next one."""
    return not last.startswith(("#", "|", "<!--")) and not _ENDED.search(last) and first[:1].islower()


def _leave_out_running(pages: Sequence[Page]) -> None:
    """Leave out running headers, footers and page numbers: lines at the edge of most pages, numbers aside."""
    met: defaultdict[str, set[int]] = defaultdict(set)
    for page in pages:
        for line in page.lines:
            met[_at_edge(line, page)].add(page.number)
    fewest = max(_MIN_REPEATED, len(pages) // 2)
    running = {words for words, on in met.items() if words and (len(on) >= fewest or _PAGE_NUMBER.fullmatch(words))}
    for page in pages:
        page.lines = [line for line in page.lines if _at_edge(line, page) not in running]


def _at_edge(line: Line | Table, page: Page) -> str:
    """Return the words of a line at the edge of a page, its numbers masked."""
    inside = isinstance(line, Table) or (line.bottom <= (1 - _EDGE) * page.height and line.top >= _EDGE * page.height)
    return "" if isinstance(line, Table) or inside else re.sub(r"\d+", "#", line.text)


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def _join_tables(pages: Sequence[Page]) -> None:
    """Join a table that goes on at the top of the next page, its repeated header left out."""
    for before, page in reversed([*pairwise(pages)]):
        above = before.lines[-1] if before.lines else None
        table = page.lines[0] if page.lines else None
        if isinstance(above, Table) and isinstance(table, Table) and _is_continued(above, table):
            rows = table.rows[1:] if table.rows[0] == above.rows[0] else table.rows
            before.lines[-1] = Table([*above.rows, *rows], above.columns)
            del page.lines[0]


def _is_continued(above: Table, table: Table) -> bool:
    if len(table.columns) != len(above.columns):
        return False
    return all(abs(one - other) <= _ALIGNED for one, other in zip(table.columns, above.columns, strict=True))


def _blocks(page: Page, body: float, levels: dict[float, int]) -> Iterator[str]:
    lines = [line for line in page.lines if isinstance(line, Line)]
    steps = Counter(round(line.bottom - above.bottom) for above, line in pairwise(lines))
    steps = Counter({step: times for step, times in steps.items() if 0 < step < 3 * body})
    # Of equally frequent distances, the smaller one is the line spacing.
    spacing = max(steps, key=lambda step: (steps[step], -step), default=body)
    right = max((line.right for line in lines), default=0)
    group: list[Line] = []
    for line in page.lines:
        if group and (isinstance(line, Table) or not _continues(group, line, levels, spacing, right)):
            yield _block(group, levels)
            group = []
        if isinstance(line, Table):
            yield writing.table([[writing.inline(cell) for cell in row] for row in line.rows])
        else:
            group.append(line)
    if group:
        yield _block(group, levels)


def _continues(group: Sequence[Line], line: Line, levels: dict[float, int], spacing: float, right: float) -> bool:
    """Return whether a line belongs to the paragraph or heading of those before it."""
    first, last = group[0], group[-1]
    level = _level(first, levels)
    if level != _level(line, levels) or line.bold != last.bold or _BULLET.match(line.text) or _NUMBER.match(line.text):
        return False
    step = line.bottom - last.bottom
    if level:
        return 0 < step <= 2 * line.size
    # A step upwards leads to the next column, where a sentence may continue.
    if step < 0:
        return not _ENDED.search(last.text) and line.text[:1].islower()
    if step > _FARTHER * max(spacing, line.size):
        return False
    if len(group) > 1 and group[1].left - first.left >= line.size:
        # A hanging indent: the first line begins left of the others.
        return line.left - first.left >= line.size
    indented = len(group) > 1 and line.left - last.left >= line.size
    short = last.right < _SHORT * right and _ENDED.search(last.text) and not line.text[:1].islower()
    return not indented and not short


def _level(line: Line, levels: dict[float, int]) -> int:
    return levels.get(_rounded(line.size), 0) if len(line.text) <= _MAX_HEADING_LENGTH else 0


def _block(group: Sequence[Line], levels: dict[float, int]) -> str:
    text = join(line.text for line in group)
    level = _level(group[0], levels)
    if bullet := _BULLET.match(text):
        return f"- {writing.inline(text[bullet.end() :])}"
    is_short = len(text) <= _MAX_HEADING_LENGTH // 2 and not _ENDED.search(text) and not _NUMBER.match(text)
    if not level and group[0].bold and is_short:
        level = min(max(levels.values(), default=0) + 1, _MAX_DEPTH + 1)
    return writing.heading(text, level) if level else writing.prose(text)

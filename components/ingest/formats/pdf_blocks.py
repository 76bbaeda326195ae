"""The lines of a PDF as Markdown: headings by the size and weight of their letters, paragraphs, lists, tables."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from components.ingest.formats import writing
from components.ingest.formats.pdf_lines import Line, TableRows, join
from components.turn import Frozen

_LARGER = 1.12
"""A heading's letters to the text's."""
_MAX_DEPTH = 4
_MAX_HEADING_LENGTH = 150
_FARTHER = 1.45
"""Distance of paragraphs to that of lines."""
_SHORT = 0.8
"""Share of the longest lines' end before which the last line of a paragraph ends."""
_EDGE = 0.1
"""Share of a page at its top and bottom where running headers and page numbers stand."""
_MIN_REPEATED = 3
_NO_PARAGRAPH = ("#", "|", "<!--")
_PAGE_NUMBER = re.compile(r"\W*#\W*")
_BULLET = re.compile(r"[•‣⁃∙▪▫●○◦■□◆➢➤✓✔❖\uf0b7\uf0a7\uf0d8\uf0fc·–—-]\s+(?=\S)")
_NUMBER = re.compile(r"(?:\d{1,2}|[a-zа-я])[.)]\s+(?=\S)")
_ENDED = re.compile(r"[.!?…:;,]\W*$")


@dataclass(frozen=True, slots=True)
class Content(Frozen):
    """The lines and tables of one page of a given height."""

    number: int
    height: float
    lines: tuple[Line | TableRows, ...]


def document_text(pages: Sequence[Content]) -> str:
    """The pages as one Markdown text, a mark before what begins on each."""
    body = _body_size(pages)
    pages = _without_running(pages)
    levels = _levels(pages, body)
    blocks: list[str] = []
    for page in _joined_tables(pages):
        on_page = list(_blocks(page, body, levels))
        if blocks and on_page and _continues_paragraph(blocks[-1], on_page[0]):
            blocks[-1] = join([blocks[-1], on_page.pop(0)])
        blocks += [writing.page_mark(page.number), *on_page]
    return writing.document(blocks)


def _continues_paragraph(last: str, first: str) -> bool:
    """Whether a paragraph at the end of a page goes on at the top of the next one."""
    return not last.startswith(_NO_PARAGRAPH) and not _ENDED.search(last) and first[:1].islower()


def _body_size(pages: Sequence[Content]) -> float:
    """The size that most letters have."""
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            if isinstance(line, Line):
                letters[round(line.size * 2) / 2] += len(line.text)
    return letters.most_common(1)[0][0] if letters else inf


def _without_running(pages: Sequence[Content]) -> list[Content]:
    """Without what stands at the edge of most pages, numbers aside: running headers, footers and page numbers."""
    met: defaultdict[str, set[int]] = defaultdict(set)
    for page in pages:
        for line in page.lines:
            if isinstance(line, Line) and _is_at_edge(line, page):
                met[_unnumbered(line)].add(page.number)
    fewest = max(_MIN_REPEATED, len(pages) // 2)
    running = {words for words, numbers in met.items() if len(numbers) >= fewest or _PAGE_NUMBER.fullmatch(words)}

    def stays(line: Line | TableRows, page: Content) -> bool:
        return isinstance(line, TableRows) or not _is_at_edge(line, page) or _unnumbered(line) not in running

    return [replace(page, lines=tuple(line for line in page.lines if stays(line, page))) for page in pages]


def _is_at_edge(line: Line, page: Content) -> bool:
    return line.y0 < _EDGE * page.height or line.y1 > (1 - _EDGE) * page.height


def _unnumbered(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


def _levels(pages: Sequence[Content], body: float) -> dict[float, int]:
    """Heading levels by size of letters, the largest first."""
    sizes = {
        _rounded(line.size)
        for page in pages
        for line in page.lines
        if isinstance(line, Line) and line.size >= _LARGER * body and any(map(str.isalpha, line.text))
    }
    return {size: min(at, _MAX_DEPTH) for at, size in enumerate(sorted(sizes, reverse=True), start=1)}


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def _joined_tables(pages: Sequence[Content]) -> Iterator[Content]:
    """A table that goes on at the top of the next page is one table, its repeated header left out."""
    last: TableRows | None = None
    pending: Content | None = None
    for page in pages:
        lines = list(page.lines)
        first = lines[0] if lines else None
        if last is not None and pending is not None and isinstance(first, TableRows) and _continues_table(first, last):
            rows = first.rows[1:] if first.rows[0] == last.rows[0] else first.rows
            last = replace(last, rows=(*last.rows, *rows))
            pending = replace(pending, lines=(*pending.lines[:-1], last))
            lines = lines[1:]
            if not lines:
                yield replace(page, lines=())
                continue
        if pending is not None:
            yield pending
        pending = replace(page, lines=tuple(lines))
        last = lines[-1] if lines and isinstance(lines[-1], TableRows) else None
    if pending is not None:
        yield pending


def _continues_table(table: TableRows, above: TableRows) -> bool:
    return len(table.columns) == len(above.columns) and all(
        abs(column - other_column) <= 4 for column, other_column in zip(table.columns, above.columns, strict=True)
    )


def _blocks(page: Content, body: float, levels: dict[float, int]) -> Iterator[str]:
    group: list[Line] = []
    setting = _setting(page, body)
    for line in page.lines:
        if group and (isinstance(line, TableRows) or not _continues_group(group, line, levels, setting)):
            yield _block(group, levels)
            group = []
        if isinstance(line, TableRows):
            yield writing.table([[writing.inline(cell) for cell in row] for row in line.rows])
        else:
            group.append(line)
    if group:
        yield _block(group, levels)


@dataclass(frozen=True, slots=True)
class _Setting(Frozen):
    """How a page is set: the usual distance of two lines and where lines end, in points."""

    spacing: float
    right: float


def _setting(page: Content, body: float) -> _Setting:
    lines = [line for line in page.lines if isinstance(line, Line)]
    steps = Counter(round(above.y0 - line.y0) for above, line in pairwise(lines) if 0 < above.y0 - line.y0 < 3 * body)
    # Of distances that are equally frequent the smaller is that of lines.
    spacing = max(steps, key=lambda step: (steps[step], -step), default=body)
    return _Setting(spacing, max((line.x1 for line in lines), default=0))


def _continues_group(group: Sequence[Line], line: Line, levels: dict[float, int], setting: _Setting) -> bool:
    """Whether a line belongs to the paragraph or heading of those before it."""
    first, last = group[0], group[-1]
    level = _level(first, levels)
    if level != _level(line, levels) or line.bold != last.bold or _BULLET.match(line.text) or _NUMBER.match(line.text):
        return False
    step = last.y0 - line.y0
    if level:
        return 0 < step <= 2 * line.size
    # Upwards is the top of the next column, where a sentence may go on.
    if step < 0:
        return not _ENDED.search(last.text) and line.text[:1].islower()
    return step <= _FARTHER * max(setting.spacing, line.size) and not _starts(group, line, setting)


def _starts(group: Sequence[Line], line: Line, setting: _Setting) -> bool:
    """Whether a line starts a paragraph by where it and the one before it stand."""
    first, last = group[0], group[-1]
    if len(group) > 1 and group[1].x0 - first.x0 >= line.size:
        return line.x0 - first.x0 < line.size
    indented = len(group) > 1 and line.x0 - last.x0 >= line.size
    short = last.x1 < _SHORT * setting.right and _ENDED.search(last.text) and not line.text[:1].islower()
    return indented or bool(short)


def _level(line: Line, levels: dict[float, int]) -> int:
    return levels.get(_rounded(line.size), 0) if len(line.text) <= _MAX_HEADING_LENGTH else 0


def _block(group: Sequence[Line], levels: dict[float, int]) -> str:
    text = join([line.text for line in group])
    level = _level(group[0], levels)
    bullet = _BULLET.match(text)
    if bullet:
        return f"- {writing.inline(text[bullet.end() :])}"
    if level:
        return writing.heading(text, level)
    if (
        group[0].bold
        and len(text) <= _MAX_HEADING_LENGTH // 2
        and not _ENDED.search(text)
        and not _NUMBER.match(text[:4])
    ):
        return writing.heading(text, min(max(levels.values(), default=0) + 1, _MAX_DEPTH + 1))
    return writing.prose(text)

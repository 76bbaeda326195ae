"""The words of a PDF page as lines and tables, in the order in which they are read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from components.ingest.formats.pdf_page import HYPHEN, Page, Word
from components.ingest.formats.pdf_tables import Grid, grids
from components.turn import Frozen

_SAME_LINE = 0.5
"""Share of the height by which words of one line may stand higher or lower."""
_COLUMN_GAP = 1.5
"""In heights. Spaces are a quarter, the widest of justified text one."""
_BACK = 0.5
_MIN_ROWS = 3
_ALIGNED = 4.0
"""Points by which the cells of a column may be apart."""
_MAX_CELL_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Line(Frozen):
    """Words on one line without a wide gap between them.

    :param number: of its page.
    :param y0: bottom, `y1` top, in points from the bottom of the page.
    """

    number: int
    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    bold: bool


@dataclass(frozen=True, slots=True)
class TableRows(Frozen):
    """A table, or the part of one that is on a page.

    :param columns: where its columns begin, in points.
    """

    number: int
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[float, ...]


def lines_of(page: Page) -> list[Line | TableRows]:
    """The lines of a page in the order of the file, tables in the place of their first word."""
    ruled = [grid for grid in grids(page.drawings) if _is_table(grid, page.words)]
    owner = [next((grid for grid in ruled if grid.holds(word)), None) for word in page.words]
    cells = {
        id(grid): [word for word, owning_grid in zip(page.words, owner, strict=True) if owning_grid is grid]
        for grid in ruled
    }
    content: list[Line | TableRows] = []
    loose: list[Word] = []
    placed: set[int] = set()
    for word, grid in zip(page.words, owner, strict=True):
        if grid is None:
            loose.append(word)
        elif id(grid) not in placed:
            placed.add(id(grid))
            content += _unruled(_lines(loose, page.number), page.number)
            loose = []
            content.append(TableRows(page.number, _filled(grid, cells[id(grid)], page.number), grid.columns))
    content += _unruled(_lines(loose, page.number), page.number)
    return content


def _is_table(grid: Grid, words: Sequence[Word]) -> bool:
    """Whether two rows and two columns of a grid hold words; a frame or a form does not count."""
    places = {grid.cell(word) for word in words if grid.holds(word)}
    return len({row for row, _ in places}) > 1 and len({column for _, column in places}) > 1


def _filled(grid: Grid, words: Sequence[Word], number: int) -> tuple[tuple[str, ...], ...]:
    cells: dict[tuple[int, int], list[Word]] = {}
    for word in words:
        cells.setdefault(grid.cell(word), []).append(word)
    text = {place: join(line.text for line in _lines(inside, number)) for place, inside in cells.items()}
    rows = [tuple(text.get((row, column), "") for column in range(len(grid.columns))) for row in range(grid.height)]
    return tuple(row for row in rows if any(row))


def join(lines: Iterable[str]) -> str:
    """Lines as running text, a word that was parted at the end of one made whole."""
    text = ""
    for line in lines:
        parted = text.endswith((HYPHEN, "-")) and text[-2:-1].isalpha() and line[:1].islower()
        text = text[:-1] + line if parted else f"{text} {line}".lstrip()
    return text.replace(HYPHEN, "-")


def _lines(words: Sequence[Word], number: int) -> list[Line]:
    lines: list[Line] = []
    group: list[Word] = []
    for word in words:
        if group and not _continues(group[-1], word):
            lines.append(_line(group, number))
            group = []
        group.append(word)
    if group:
        lines.append(_line(group, number))
    return lines


def _continues(last: Word, word: Word) -> bool:
    size = max(last.size, word.size)
    level = abs((last.y0 + last.y1) - (word.y0 + word.y1)) / 2 <= _SAME_LINE * size
    return level and -_BACK * size <= word.x0 - last.x1 <= _COLUMN_GAP * size


def _line(words: Sequence[Word], number: int) -> Line:
    text = " ".join(word.text for word in words)
    bold = sum(len(word.text) for word in words if word.bold) * 2 > len(text)
    x0, x1 = min(word.x0 for word in words), max(word.x1 for word in words)
    y0, y1 = min(word.y0 for word in words), max(word.y1 for word in words)
    return Line(number, text, x0, y0, x1, y1, median(word.size for word in words), bold)


def _unruled(lines: Sequence[Line], number: int) -> Iterator[Line | TableRows]:
    """Tables without rules: rows under each other whose cells begin at the same places."""
    rows = _rows(lines)
    at = 0
    while at < len(rows):
        end = _table_end(rows, at)
        if end - at >= _MIN_ROWS:
            columns = tuple(cell.x0 for cell in rows[at])
            yield TableRows(number, tuple(tuple(cell.text for cell in row) for row in rows[at:end]), columns)
            at = end
        else:
            yield from rows[at]
            at += 1


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that stand beside each other, from left to right, as one row."""
    rows: list[list[Line]] = []
    for line in lines:
        last = rows[-1][-1] if rows else None
        level = last is not None and abs((last.y0 + last.y1) - (line.y0 + line.y1)) / 2 <= _SAME_LINE * last.size
        if last is not None and level and line.x0 > last.x1:
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def _table_end(rows: Sequence[Sequence[Line]], start: int) -> int:
    first = rows[start]
    if len(first) < 2:
        return start
    end = start
    while end < len(rows) and _is_like(rows[end], first):
        end += 1
    return end


def _is_like(row: Sequence[Line], first: Sequence[Line]) -> bool:
    if len(row) != len(first) or any(len(cell.text) > _MAX_CELL_LENGTH for cell in row):
        return False
    starts = all(abs(cell.x0 - above.x0) <= _ALIGNED for cell, above in zip(row, first, strict=True))
    ends = all(abs(cell.x1 - above.x1) <= _ALIGNED for cell, above in zip(row[1:], first[1:], strict=True))
    return starts or (abs(row[0].x0 - first[0].x0) <= _ALIGNED and ends)

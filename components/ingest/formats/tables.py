"""Spreadsheets (XLSX) and delimited text (CSV) as Markdown tables, or as FAQ pairs when their columns say so."""

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from openpyxl import load_workbook
from openpyxl.worksheet._read_only import ReadOnlyWorksheet

from components.ingest.formats import faq, properties, writing
from components.ingest.formats.detect import format_of
from components.ingest.formats.encoding import decoded
from components.ingest.formats.parsed import MAX_CELLS, Parsed
from tenants.core.errors import Invalid, TooLarge, UnsupportedMedia

if TYPE_CHECKING:
    from tenants.core.json import Json

_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 50
_MAX_CELL_LENGTH = 1_000_000
_MAX_HEADER_WIDTH = 600
"""Characters. A longer header repeated over every few rows would drown them, so each row names its columns itself."""
_FAILED = frozenset({"#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NULL!", "#NUM!"})
"""Values shown by a formula without a result."""


def read_csv(data: bytes) -> Parsed:
    """Read delimited text in any encoding that office programs write. Rows longer than the header are flagged.

    Codes: `file_undecodable`, `table_invalid`, `cells_too_many`.
    """
    rows = [row for _, row in _csv_rows(data)]
    parsed = _document([("", rows)], "", {})
    return replace(parsed, flags=("rows_overlong", *parsed.flags)) if _has_overlong(rows) else parsed


def _has_overlong(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a row has more cells than the header, the first row of several: a delimiter without quotes."""
    widths = [max((at for at, cell in enumerate(row, 1) if cell.strip()), default=0) for row in rows]
    header = next((width for width in widths if width > 1), 0)
    return any(width > header for width in widths) and header > 0


def _csv_rows(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their numbers as a spreadsheet shows them."""
    text = decoded(data)
    delimiter, number = "", 1
    first, _, body = text.partition("\n")
    if first.lower().startswith("sep=") and len(first.strip()) == len("sep=") + 1:
        # Excel's own way to name the delimiter.
        delimiter, text, number = first.strip()[-1], body, 2
    budget = MAX_CELLS
    rows = _rows(text, delimiter or max(_DELIMITERS, key=lambda each: _evenness(text, each)))
    for at, row in enumerate(rows, number):
        budget = _spent(budget, len(row))
        yield at, row


def _evenness(text: str, delimiter: str) -> tuple[float, int]:
    """Return the share of the first rows that have the same number of cells, more than one, and that number."""
    widths: Counter[int] = Counter()
    try:
        for row, _ in zip(_rows(text, delimiter), range(_SAMPLE_ROWS), strict=False):
            widths[len(row)] += bool(row)
    except Invalid:
        return 0.0, 0
    width, rows = max(widths.items(), key=lambda item: item[1], default=(0, 0))
    return (rows / widths.total() if width > 1 else 0.0), width


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(_MAX_CELL_LENGTH)
    with Invalid("table_invalid").instead_of(csv.Error):
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def read_xlsx(data: bytes) -> Parsed:
    """Read the values of all visible sheets last calculated. Hidden sheets are left out and flagged.

    Codes: `cells_too_many`, and `file_damaged` for an error of openpyxl.
    """
    sheets, hidden = _sheets(data)
    parsed = _document([(title, [row for _, row in rows]) for title, rows in sheets], *properties.of_office(data))
    return replace(parsed, flags=("hidden_sheets", *parsed.flags)) if hidden else parsed


def _sheets(data: bytes) -> tuple[list[tuple[str, list[tuple[int, list[str]]]]], bool]:
    """Return the filled rows of all visible sheets with their numbers, and whether there are hidden sheets."""
    sheets: list[tuple[str, list[tuple[int, list[str]]]]] = []
    budget = MAX_CELLS
    with warnings.catch_warnings():
        # About styles and validations that openpyxl does not know.
        warnings.simplefilter("ignore")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        inside: Sequence[object] = book.worksheets
        all_sheets = [sheet for sheet in inside if isinstance(sheet, ReadOnlyWorksheet)]
        visible = [sheet for sheet in all_sheets if sheet.sheet_state == "visible"]
        for sheet in visible:
            # The size that a sheet declares may be wrong, and openpyxl would believe it.
            sheet.reset_dimensions()
            rows = []
            for number, cells in enumerate(sheet.rows, 1):
                budget = _spent(budget, len(cells))
                if any(cell.value is not None for cell in cells):
                    rows.append((number, [_as_text(cell.value, cell.number_format) for cell in cells]))
            sheets.append((sheet.title, rows))
        book.close()
    return sheets, len(visible) < len(all_sheets)


def rows_of(name: str, data: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the filled rows of a CSV file, or of the first visible sheet of a workbook, with their numbers.

    Codes: `file_unsupported` for any other format, and those of `read_csv` and `read_xlsx`.
    """
    form = format_of(name, data)
    if form == "xlsx":
        sheets, _ = _sheets(data)
        yield from (sheets[0][1] if sheets else ())
    elif form in ("csv", "plain"):
        yield from (row for row in _csv_rows(data) if any(cell.strip() for cell in row[1]))
    else:
        raise UnsupportedMedia("file_unsupported", path=name, formats=".csv, .xlsx")


def _spent(budget: int, cells: int) -> int:
    budget -= max(1, cells)
    if budget < 0:
        raise TooLarge("cells_too_many", limit=MAX_CELLS)
    return budget


def _as_text(value: object, number_format: str | None) -> str:
    """Return a value in the form the sheet shows, as far as that does not depend on a locale."""
    if value is None or (isinstance(value, str) and value in _FAILED):
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        percent = "%" in (number_format or "")
        return f"{value * 100 if percent else value:.15g}{'%' if percent else ''}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    return value.isoformat() if isinstance(value, date) else str(value)


def _document(sheets: Sequence[tuple[str, list[list[str]]]], title: str, meta: "Mapping[str, Json]") -> Parsed:
    """Return all tables as one document, a section each when there are several.

    When every table has a column of questions and one of answers, the document is an FAQ.
    """
    filled = [(name, trimmed) for name, rows in sheets if (trimmed := _trimmed(rows))]
    pairs = [faq.pairs_of_rows(rows) for _, rows in filled]
    if pairs and all(pairs):
        return faq.as_document([pair for of_sheet in pairs for pair in of_sheet], title, meta, pages=len(filled))
    blocks: list[str] = []
    for name, rows in filled:
        blocks += [writing.heading(name, 2)] if len(filled) > 1 else []
        blocks += _blocks(rows)
    return Parsed(title, writing.document(blocks), meta=meta, pages=len(filled))


def _trimmed(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Leave out empty rows, and the columns that are empty in all of them."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    used = sorted({at for row in filled for at, cell in enumerate(row) if cell.strip()})
    return [[row[at].strip() if at < len(row) else "" for at in used] for row in filled]


def _blocks(rows: list[list[str]]) -> list[str]:
    """Return the lines above the header as paragraphs, then the table."""
    single = [sum(map(bool, row)) == 1 for row in rows] if len(rows[0]) > 1 else []
    start = single.index(False) if False in single else 0
    above = [writing.prose(next(filter(None, row))) for row in rows[:start]]
    header, *body = rows[start:]
    if sum(map(len, header)) > _MAX_HEADER_WIDTH:
        named = (
            "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(header, row, strict=True) if cell)
            for row in body
        )
        return [*above, *(f"- {writing.inline(row)}" for row in named)]
    return [*above, writing.table([[writing.inline(cell) for cell in row] for row in (header, *body)])]

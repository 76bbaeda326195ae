"""Tables from spreadsheets and delimited files as Markdown, or as FAQ pairs when their columns say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.ingest.formats import faq, writing
from components.ingest.formats.parsed import Parsed
from components.turn import Frozen

if TYPE_CHECKING:
    from tenants.index.protocol import Json

Rows = Sequence[Sequence[str]]
_MAX_HEADER_WIDTH = 600
"""Characters. A longer header repeated over every few rows would drown them, so each row names its columns itself."""


@dataclass(frozen=True, slots=True)
class Sheet(Frozen):
    """One table with its name, empty for a file that has only one."""

    name: str
    rows: Rows


def tables_as_document(sheets: Sequence[Sheet], title: str = "", meta: "Mapping[str, Json] | None" = None) -> Parsed:
    """All tables as one document, a section each when there are several.

    When every table has a column of questions and one of answers, the document is an FAQ.
    """
    filled = [(sheet.name, _trimmed(sheet.rows)) for sheet in sheets]
    filled = [(name, rows) for name, rows in filled if rows]
    pairs = [faq.pairs_of_rows(rows) for _, rows in filled]
    if pairs and all(pairs):
        merged = [pair for sheet_pairs in pairs for pair in sheet_pairs]
        return faq.as_document(merged, title, meta or {}, pages=len(filled))
    blocks: list[str] = []
    for name, rows in filled:
        if len(filled) > 1:
            blocks.append(writing.heading(name, 2))
        blocks += _blocks(rows)
    return Parsed(title, writing.document(blocks), meta=meta or {}, pages=len(filled))


def _trimmed(rows: Rows) -> list[list[str]]:
    """Without empty rows, and without the columns that are empty in all of them."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    width = max(map(len, filled), default=0)
    used = [at for at in range(width) if any(at < len(row) and row[at].strip() for row in filled)]
    return [[row[at].strip() if at < len(row) else "" for at in used] for row in filled]


def _blocks(rows: list[list[str]]) -> list[str]:
    """Lines above the header as paragraphs, then the table."""
    start = 0
    if len(rows[0]) > 1:
        while start < len(rows) and sum(map(bool, rows[start])) == 1:
            start += 1
    if start == len(rows):
        start = 0
    above = [writing.prose(next(filter(None, row))) for row in rows[:start]]
    header, *body = rows[start:]
    if sum(map(len, header)) > _MAX_HEADER_WIDTH:
        return [*above, *(_record(header, row) for row in body)]
    return [*above, writing.table([[writing.inline(cell) for cell in row] for row in (header, *body)])]


def _record(header: Sequence[str], row: Sequence[str]) -> str:
    named = (f"{name}: {value}" if name else value for name, value in zip(header, row, strict=True) if value)
    return f"- {writing.inline('; '.join(named))}"

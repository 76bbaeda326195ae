"""CSV and its kin: `,`, `;`, tab or `|` between the cells, in any encoding that Russian office programs write."""

import csv
import io
from collections import Counter
from collections.abc import Iterator

from components.ingest.formats.encoding import decoded
from components.ingest.formats.limits import MAX_CELLS
from components.ingest.formats.parsed import Parsed
from components.ingest.formats.tables import Sheet, tables_as_document
from tenants.errors import Invalid, TooLarge

_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 50
_MAX_CELL_LENGTH = 1_000_000


def read(data: bytes) -> Parsed:
    """One table as one document. Codes: `file_undecodable`, `table_invalid`, `cells_too_many`."""
    text = decoded(data)
    delimiter = ""
    first, _, body = text.partition("\n")
    if first.lower().startswith("sep=") and len(first.strip()) == len("sep=") + 1:
        # Excel's own way to name the delimiter.
        delimiter, text = first.strip()[-1], body
    rows: list[list[str]] = []
    cells = 0
    for row in _rows(text, delimiter or _delimiter(text)):
        cells += max(1, len(row))
        if cells > MAX_CELLS:
            raise TooLarge("cells_too_many", limit=MAX_CELLS)
        rows.append(row)
    return tables_as_document([Sheet("", rows)])


def _delimiter(text: str) -> str:
    """The one that cuts most of the first rows into the same number of cells, and into more of them."""
    return max(_DELIMITERS, key=lambda delimiter: _evenness(text, delimiter))


def _evenness(text: str, delimiter: str) -> tuple[float, int]:
    widths: Counter[int] = Counter()
    try:
        for row, _ in zip(_rows(text, delimiter), range(_SAMPLE_ROWS), strict=False):
            if row:
                widths[len(row)] += 1
    except Invalid:
        return 0.0, 0
    if not widths:
        return 0.0, 0
    width, rows = widths.most_common(1)[0]
    return (rows / widths.total() if width > 1 else 0.0), width


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(_MAX_CELL_LENGTH)
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error as malformed:
        raise Invalid("table_invalid") from malformed

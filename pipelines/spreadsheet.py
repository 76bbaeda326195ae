"""Tables as CSV that a spreadsheet may open.

Threat: a spreadsheet runs a cell that begins like a formula, even in a customer's text (OWASP, "CSV Injection"). Such
texts get an apostrophe in front, which spreadsheets take for "this is text".
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel takes UTF-8 for the code page of the machine."""


def csv_lines(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file, one at a time, its header first."""
    yield _BYTE_ORDER_MARK + _line(names)
    for row in rows:
        yield _line([_harmless(cell) for cell in row])


def _harmless(cell: object) -> object:
    # What is behind spaces runs as well, once the spreadsheet has trimmed them.
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip(" \u00a0\u200b").startswith(_BEGINNINGS) else cell


def _line(cells: Sequence[object]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()


def without_guard(cell: str) -> str:
    """Return a cell of a file that was written here and comes back, without the apostrophe in front."""
    return cell[1:] if cell.startswith("'") and _harmless(cell[1:]) == cell else cell

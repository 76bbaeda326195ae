"""Tables as CSV that a spreadsheet may open.

Threat: a spreadsheet runs a cell that begins like a formula, even in a customer's text (OWASP, "CSV Injection"). Such
texts get an apostrophe in front, which spreadsheets take for "this is text". Where semicolons separate cells, as in
Russian, quotes do not hold a text together: another cell begins at each semicolon and line break within it.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

# What is behind spaces runs as well, once the spreadsheet has trimmed them.
_FIRST = r"\A{guard}(?=[ \u00a0\u200b]*[=+\-@\t\r\n＝＋－＠])"
_FURTHER = r"(?<=[;\t\r\n]){guard}(?=[ \u00a0\u200b\"]*[=+\-@＝＋－＠])"
_FORMULA, _GUARD = (re.compile(f"{_FIRST}|{_FURTHER}".format(guard=guard)) for guard in ("", "'"))
_BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel takes UTF-8 for the code page of the machine."""


def csv_lines(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file, one at a time, its header first."""
    yield _BYTE_ORDER_MARK + _line(names)
    for row in rows:
        yield _line([_harmless(cell) for cell in row])


def _harmless(cell: object) -> object:
    return _FORMULA.sub("'", cell) if isinstance(cell, str) else cell


def _line(cells: Sequence[object]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()


def without_guard(cell: str) -> str:
    """Return a cell of a file that was written here and comes back, without the apostrophes."""
    return _GUARD.sub("", cell)

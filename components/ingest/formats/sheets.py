"""Excel workbooks (XLSX): the values as they were last calculated, sheet by sheet."""

import warnings
from collections.abc import Sequence
from datetime import date, datetime, time
from io import BytesIO

from openpyxl import load_workbook
from openpyxl.worksheet._read_only import ReadOnlyWorksheet

from components.ingest.formats import properties
from components.ingest.formats.limits import MAX_CELLS
from components.ingest.formats.parsed import FileFlag, Parsed
from components.ingest.formats.tables import Sheet, tables_as_document
from tenants.errors import TooLarge

_FAILED = frozenset({"#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NULL!", "#NUM!"})
"""What a formula without a result shows."""


def read(data: bytes) -> Parsed:
    """All visible sheets as one document. Hidden ones are left out and flagged.

    Codes: `cells_too_many`, and `file_damaged` by way of what openpyxl raises.
    """
    with warnings.catch_warnings():
        # Styles and validations that openpyxl does not know are nothing to us.
        warnings.simplefilter("ignore")
        book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
        sheets: list[Sheet] = []
        hidden = False
        budget = MAX_CELLS
        inside: Sequence[object] = book.worksheets
        for sheet in inside:
            if not isinstance(sheet, ReadOnlyWorksheet):
                continue
            if sheet.sheet_state != "visible":
                hidden = True
                continue
            # What a sheet says of its own size may be wrong, and readers would believe it.
            sheet.reset_dimensions()
            rows = []
            for cells in sheet.rows:
                budget -= max(1, len(cells))
                if budget < 0:
                    raise TooLarge("cells_too_many", limit=MAX_CELLS)
                if any(cell.value is not None for cell in cells):
                    rows.append([_as_text(cell.value, cell.number_format) for cell in cells])
            sheets.append(Sheet(sheet.title, rows))
        title, meta = properties.of_office(data)
        book.close()
    parsed = tables_as_document(sheets, title, meta)
    flags: tuple[FileFlag, ...] = ("hidden_sheets", *parsed.flags) if hidden else parsed.flags
    return Parsed(parsed.title, parsed.text, parsed.markup, parsed.meta, flags, parsed.pages)


def _as_text(value: object, number_format: str | None) -> str:
    """A value as the sheet shows it, as far as that does not depend on anybody's locale."""
    if value is None or (isinstance(value, str) and value in _FAILED):
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        percent = "%" in (number_format or "")
        return f"{value * 100 if percent else value:.15g}{'%' if percent else ''}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date):
        return value.isoformat()
    return str(value)

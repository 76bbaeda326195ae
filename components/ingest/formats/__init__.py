"""Readers of file formats: bytes in, one document out.

All but text and Markdown run in the sandbox only. A reader is imported when its first file comes. One for a further
ending is a file in `added`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from components.ingest.formats.detect import Format, format_of, is_address
from components.ingest.formats.parsed import Parsed
from tenants.errors import CallerError, Invalid, UnsupportedMedia

Reader: TypeAlias = Callable[[bytes], Parsed]

VERSION = "1"
"""Raised whenever the same bytes are read differently, so that stored files are read anew."""

HARMLESS: frozenset[Format] = frozenset({"markdown", "plain"})
"""Formats whose readers are our own few lines, in time and memory linear in the file."""


def read(name: str, data: bytes) -> Parsed:
    """A file as one document, by the reader of what its content is, whatever it is called.

    :param name: its name, or the address of a page, which its relative links are resolved against.
    :raises CallerError: `file_unsupported`, `file_mislabelled`, `file_damaged`, and what the format's reader says.
    """
    form = format_of(name, data)
    try:
        return _read(form, name, data)
    except (CallerError, MemoryError, RecursionError):
        raise
    except Exception as broken:
        # Libraries raise what they like at a broken file, and to a person it all means the same.
        raise Invalid("file_damaged") from broken


def _read(form: Format, name: str, data: bytes) -> Parsed:
    match form:
        case "pdf":
            from components.ingest.formats import pdf

            return pdf.read(data)
        case "docx":
            from components.ingest.formats import docx

            return docx.read(data)
        case "xlsx":
            from components.ingest.formats import sheets

            return sheets.read(data)
        case "html":
            from components.ingest.formats import html

            return html.read(data, name if is_address(name) else "")
        case "csv":
            from components.ingest.formats import delimited

            return delimited.read(data)
        case "json":
            from components.ingest.formats import faq

            return faq.read_json(data)
        case "markdown" | "plain":
            from components.ingest.formats import text

            return text.read_markdown(data) if form == "markdown" else text.read_plain(data)
        case "json_lines":
            raise UnsupportedMedia("file_unsupported", path=name, formats="")
        case _:
            reader: Reader = import_module(f"{__name__}.added.{form}").read
            return reader(data)

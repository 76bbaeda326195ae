"""Readers of file formats: bytes in, one document out.

All but text and Markdown run in the sandbox only. A reader is imported when its first file comes. To read another
format, add a module to `added`, named after the file ending.
"""

from importlib import import_module

from components.ingest.formats.detect import Format, format_of, is_address
from components.ingest.formats.parsed import Parsed
from tenants.core.errors import CallerError, Invalid, UnsupportedMedia

VERSION = "4"
"""Increase it whenever the same bytes are read differently, so that stored files are read again."""

HARMLESS: frozenset[Format] = frozenset({"markdown", "plain"})
"""Formats whose readers are a few lines here, in time and memory linear in the file."""

_READERS = {
    "pdf": "pdf.read",
    "docx": "docx.read",
    "xlsx": "tables.read_xlsx",
    "csv": "tables.read_csv",
    "html": "html.read",
    "json": "faq.read_json",
    "markdown": "text.read_markdown",
    "plain": "text.read_plain",
}


def read(name: str, data: bytes) -> Parsed:
    """Read a file as one document, by the reader for its content, whatever its name is.

    :param name: its name, or the address of a page, which its relative links are resolved against.
    :raises CallerError: `file_unsupported`, `file_mislabelled`, `file_damaged`, and the errors of the format's reader.
    """
    form = format_of(name, data)
    if form == "json_lines":
        raise UnsupportedMedia("file_unsupported", path=name, formats="")
    module, _, function = _READERS.get(form, f"added.{form}.read").rpartition(".")
    reader = getattr(import_module(f"{__name__}.{module}"), function)
    try:
        parsed: Parsed = reader(data, name) if form == "html" and is_address(name) else reader(data)
    except (CallerError, MemoryError, RecursionError):
        raise
    except Exception as broken:
        # Libraries raise what they like at a broken file, and to a person it all means the same.
        raise Invalid("file_damaged") from broken
    return parsed

"""File type detection: by content where possible, otherwise by file extension."""

import re
import zipfile
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from tenants.core.errors import Invalid, UnsupportedMedia

Format: TypeAlias = str
"""`markdown`, `plain`, `json_lines`, `pdf`, `docx`, `html`, `xlsx`, `csv`, `json`, or an added format."""

ADDED: dict[str, Format] = {
    f".{path.stem}": path.stem for path in sorted(Path(__file__).with_name("added").glob("[!_]*.py"))
}
"""File extensions with an added reader, named after its module."""

FORMATS: dict[str, Format] = {
    **ADDED,
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "plain",
    ".pdf": "pdf",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
    ".xlsx": "xlsx",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json_lines",
    ".ndjson": "json_lines",
}
"""Formats by file extension. A JSON Lines file holds many documents, any other file a single document."""

_PARTS: dict[str, Format] = {"word/": "docx", "xl/": "xlsx"}
_PDF_WITHIN = 1_024
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
PACKED = b"PK\x03\x04"
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""First bytes of Office files from before 2007 (Compound File Binary)."""


def format_of(name: str, data: bytes) -> Format:
    """Return the format to read a file in.

    :param name: its name, or the address of a page.
    Codes: `file_unsupported`; `file_mislabelled` when the name promises a format that the content is not;
    `file_damaged` for an archive that cannot be opened.
    """
    promised = _promised(name)
    actual = _by_content(data)
    if actual is None and promised is not None:
        if promised in {"pdf", "docx", "xlsx"}:
            raise Invalid("file_mislabelled")
        return promised
    if actual is None or actual == "other":
        raise UnsupportedMedia("file_unsupported", path=name, formats=", ".join(FORMATS))
    return actual


def is_packed(data: bytes) -> bool:
    """Return whether the content is an archive. Only the sandbox may read its directory, which can be huge."""
    return data.startswith((PACKED, COMPOUND))


def is_address(name: str) -> bool:
    """Return whether a document is named by where it is on the web."""
    return name.startswith(("http://", "https://"))


def _promised(name: str) -> Format | None:
    if is_address(name):
        return FORMATS.get(PurePosixPath(urlsplit(name).path).suffix.lower(), "html")
    return FORMATS.get(PurePosixPath(name.replace("\\", "/")).suffix.lower())


def _by_content(data: bytes) -> Format | Literal["other"] | None:
    """Detect the format by content; None if unclear."""
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    if data.startswith(COMPOUND):
        return "other"
    if data.startswith(PACKED):
        try:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as broken:
            raise Invalid("file_damaged") from broken
        return next((form for part, form in _PARTS.items() if any(name.startswith(part) for name in names)), "other")
    return "html" if _HTML.match(data[:_PDF_WITHIN]) else None

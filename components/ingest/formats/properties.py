"""Title and date from the properties of files, if plausible."""

import re
import zipfile
from datetime import UTC, date, datetime
from io import BytesIO
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from tenants.core.json import Json

_MAX_LENGTH = 300
_CORE = "docProps/core.xml"
_DUBLIN = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_PDF_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")
_EARLIEST = date(1990, 1, 1)
_STAND_INS = (
    r"untitled|без имени|без названия|новый документ|new document|microsoft (?:word|excel)\b.*",
    r"(?:document|документ|книга|book|sheet|лист|slide|presentation)\s?\d*",
    r".*\.(?:docx?|xlsx?|pptx?|pdf|indd|tex|rtf|odt|html?|cdr)",
    r"[\W\d_]*",
)
_STAND_IN = re.compile("|".join(_STAND_INS), re.IGNORECASE)
"""Default titles that programs write."""


def plausible_title(value: object) -> str:
    """Return a title written by a person; empty for names of programs or files and for default titles."""
    words = " ".join(value.split()) if isinstance(value, str) else ""
    return "" if _STAND_IN.fullmatch(words) or len(words) > _MAX_LENGTH else words


def plausible_day(value: object) -> str:
    """Return the ISO 8601 day of a moment, as PDF, HTML and office files write them; empty if it cannot be one."""
    words = value.strip() if isinstance(value, str) else ""
    try:
        match = _PDF_DATE.match(words)
        numbers = (int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None
        day = date(*numbers) if numbers else date.fromisoformat(words[:10])
    except ValueError:
        return ""
    return day.isoformat() if _EARLIEST <= day <= datetime.now(UTC).date() else ""


def described(title: object, author: object, *days: object) -> "tuple[str, dict[str, Json]]":
    """Title and metadata of a document; the first of `days` that can be believed is when it was last changed."""
    meta: dict[str, Json] = {}
    if isinstance(author, str) and 0 < len(author.strip()) <= _MAX_LENGTH:
        meta["author"] = author.strip()
    if day := next(filter(None, map(plausible_day, days)), ""):
        meta["updated_at"] = day
    return plausible_title(title), meta


def of_office(data: bytes) -> "tuple[str, dict[str, Json]]":
    """Title and metadata of a DOCX or XLSX file, from the part that holds its core properties."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            root = etree.fromstring(archive.read(_CORE), etree.XMLParser(resolve_entities=False, no_network=True))
    except (KeyError, etree.XMLSyntaxError):
        return "", {}
    names = (f"{_DUBLIN}title", f"{_DUBLIN}creator", f"{_TERMS}modified", f"{_TERMS}created")
    return described(*(root.findtext(name) for name in names))

"""Checks of packed documents (DOCX, XLSX) by their directory, before anything is unpacked.

The threat: a few kilobytes that unpack to terabytes, archives within archives, names that lead out of a folder, and XML
whose entities multiply. Declared sizes may lie, but `zipfile` unpacks no more than is declared, and parts that share
their bytes are refused, so the declared sizes bound the work. XML is held to having no DOCTYPE: office programs write
none, and no entity can be declared without one.
"""

import zipfile
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import PurePosixPath
from typing import Never
from xml.parsers import expat

from components.ingest.formats.detect import COMPOUND, PACKED
from components.ingest.formats.parsed import MAX_PARTS, MAX_RATIO, MAX_UNPACKED_BYTES
from tenants.core.errors import Invalid, TooLarge

_LOCKED = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED = 0x1
_RATIO_FROM = 1_000_000
"""Unpacked bytes from which the compression ratio is checked."""
_ARCHIVES = frozenset({".zip", ".7z", ".rar", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".jar"})
_XML = frozenset({".xml", ".rels", ".vml"})
_HTML_NAMES = frozenset({".svg", ".htm", ".html", ".mht"})
"""Suffixes of embedded web content, which may have a DOCTYPE and is never parsed."""
_MARKS = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00<", b"\x00\x00\x00<")
_CHUNK_BYTES = 65_536


def check_archive(data: bytes) -> None:
    """Refuse an office file that is locked or dangerous to unpack. What is no archive passes.

    Codes: `file_damaged`, `file_encrypted`, `archive_too_large`, `archive_parts_too_many`, `archive_name_unsafe`,
    `archive_nested`, `xml_doctype`.
    """
    if data.startswith(COMPOUND) and _LOCKED in data:
        raise Invalid("file_encrypted")
    if not data.startswith(PACKED):
        return
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            _check_declared(archive.infolist(), len(data))
            for part in archive.infolist():
                _check_xml(archive, part)
    except (zipfile.BadZipFile, zlib.error, expat.ExpatError, OSError, EOFError, ValueError, RuntimeError) as broken:
        raise Invalid("file_damaged") from broken


def _check_declared(parts: Sequence[zipfile.ZipInfo], packed: int) -> None:
    if len(parts) > MAX_PARTS:
        raise TooLarge("archive_parts_too_many", limit=MAX_PARTS)
    for part in parts:
        _check_name(part.orig_filename)
        if part.flag_bits & _ENCRYPTED:
            raise Invalid("file_encrypted")
        if part.file_size > max(_RATIO_FROM, MAX_RATIO * part.compress_size):
            raise TooLarge("archive_too_large", limit=MAX_UNPACKED_BYTES)
    if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
        raise TooLarge("archive_too_large", limit=MAX_UNPACKED_BYTES)
    if sum(part.compress_size for part in parts) > packed or len({part.filename for part in parts}) < len(parts):
        raise Invalid("file_damaged")


def _check_name(name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or not name.isprintable():
        raise Invalid("archive_name_unsafe")
    if path.suffix.lower() in _ARCHIVES:
        raise Invalid("archive_nested")


def _check_xml(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Read a part up to its root element; no DOCTYPE can follow it."""
    suffix = PurePosixPath(part.filename).suffix.lower()
    if suffix in _HTML_NAMES:
        return
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = _stop
    with archive.open(part) as stream:
        data = stream.read(_CHUNK_BYTES)
        # The document declares the type of a part; its name proves nothing.
        if suffix not in _XML and not data.lstrip().startswith(_MARKS):
            return
        try:
            while data:
                parser.Parse(data)
                data = stream.read(_CHUNK_BYTES)
        except _RootReached:
            return


class _RootReached(Exception):
    """There is no DOCTYPE."""


def _stop(name: str, attributes: dict[str, str]) -> Never:  # noqa: ARG001 - expat's signature
    raise _RootReached


def _refuse_doctype(name: str, system: str | None, public: str | None, internal: bool) -> Never:  # noqa: ARG001
    raise Invalid("xml_doctype")

"""Readers of file formats: bytes in, one document out. They run in the sandbox only."""

from components.ingest.formats.parsed import Parsed
from tenants.errors import UnsupportedMedia


def read(name: str, data: bytes) -> Parsed:  # noqa: ARG001 - no format has a reader yet
    """A file as one document, by the reader of its format."""
    raise UnsupportedMedia("file_unsupported", path=name, formats="")

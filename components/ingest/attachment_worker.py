"""The process that reads what customers send. `components.ingest.attachments` starts it."""

from collections.abc import Mapping
from io import BytesIO

from components.ingest.file_worker import guarded
from components.ingest.formats import read
from components.ingest.formats.archive import check_archive
from components.ingest.formats.detect import format_of
from components.ingest.formats.encoding import decoded
from components.ingest.worker import serve
from tenants.errors import Invalid, TooLarge, UnsupportedMedia

MAX_PIXELS = 60_000_000
"""Of a picture: more than telephones take, and what fits into a worker's memory once it is unpacked."""

_PICTURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
_PACKED = frozenset({"pdf", "docx", "xlsx"})
_WRITTEN = frozenset({"plain", "markdown", "csv"})


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    serve(guarded(_scan))


def _scan(name: str, data: bytes) -> Mapping[str, object]:
    picture = _picture(data)
    if picture:
        _check_picture(picture, data)
        return {"format": picture}
    check_archive(data)
    # Logs have no reader of their own, and are text like any other.
    form = format_of(f"{name}.txt" if name.lower().endswith(".log") else name, data)
    if form in _PACKED:
        read(name, data)
        return {"format": form}
    if form not in _WRITTEN:
        raise UnsupportedMedia("attachment_unsupported")
    if not decoded(data).strip():
        raise Invalid("file_empty")
    return {"format": "csv" if form == "csv" else "plain"}


def _picture(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((form for start, form in _PICTURES.items() if data.startswith(start)), "")


def _check_picture(form: str, data: bytes) -> None:
    """Unpack it once: what a viewer would fail on fails here."""
    from PIL import Image

    with Image.open(BytesIO(data), formats=(form.upper(),)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise TooLarge("attachment_unreadable")
        image.load()

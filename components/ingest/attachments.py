"""Type detection for files that customers send to operators, done in a sandbox.

The threat: a file that attacks its reader, or pretends to be of another type. A worker process reads each one
whole, as it would a document; an unreadable file is refused, and a file's name decides nothing.
"""

import re
from pathlib import PurePosixPath

from pydantic import StrictStr

from components.ingest.sandbox import Answer, Form, Sandbox
from tenants.core.errors import CallerError, Invalid, UnsupportedMedia

SECONDS = 2.0
"""Time limit of one file, for which its sender and later requests wait."""

MAX_STEM_LENGTH = 80
"""Maximum length of a name without its extension, so that its UTF-8 bytes fit any file system."""

_OFFICE = "application/vnd.openxmlformats-officedocument"

MEDIA_TYPES = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "pdf": "application/pdf",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "csv": "text/csv",
    "plain": "text/plain",
}
"""Formats that customers may send: photos, scans and texts, but no web pages, programs or archives."""

_ENDINGS = {"jpeg": (".jpg", ".jpeg"), "plain": (".txt", ".log", ".md"), "csv": (".csv", ".tsv")}


class _FormatForm(Form):
    format: StrictStr


class AttachmentScanner(Sandbox):
    """Tells what a file is. Thread-safe.

    :param workers: how many files are read at once; further callers wait.
    """

    def __init__(self, workers: int = 2) -> None:
        super().__init__(workers, SECONDS)

    def format_of(self, name: str, data: bytes) -> str:
        """Return the format of a file by its content, one of `MEDIA_TYPES`.

        :raises UnsupportedMedia: `attachment_unsupported`.
        :raises Invalid: `attachment_unreadable`: damaged, locked, or too much to read.
        :raises TryAgain: `reader_unavailable`.
        """
        try:
            found = self.call("scan", name, data, Answer[_FormatForm]).format
        except UnsupportedMedia as unsupported:
            raise UnsupportedMedia("attachment_unsupported") from unsupported
        except CallerError as unreadable:
            raise Invalid("attachment_unreadable") from unreadable
        if found not in MEDIA_TYPES:
            raise UnsupportedMedia("attachment_unsupported")
        return found


def download_name(name: str, form: str) -> str:
    """Return the name that a file is saved under: no path, nothing that another system reads as more than a letter.

    It ends as its format does, so that the file opens as what it was read as.
    """
    # Telephones and screenshots put characters into names that their owner has never seen.
    plain = re.sub(r'[:*?"<>|\x00]', "_", "".join(one if one.isprintable() else " " for one in name))
    path = PurePosixPath(plain.replace("\\", "/").strip(" ./"))
    endings = _ENDINGS.get(form, (f".{form}",))
    ending = path.suffix if path.suffix.lower() in endings else endings[0]
    stem = path.name.removesuffix(ending).strip(" .")
    return f"{stem[:MAX_STEM_LENGTH] or 'file'}{ending}"

"""Files that customers send to people: what they are, found out where that can do no harm.

The threat: a file that attacks whoever opens it, or passes for another kind than it is. A worker process reads each one
whole, as it would a document; what cannot be read is refused, and what a file is called decides nothing.
`components.ingest.attachment_worker` is the other end.
"""

import logging
import re
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from components.ingest.process import Processes, program_of
from components.ingest.sandbox import MEMORY
from tenants.errors import CallerError, Invalid, UnsupportedMedia

SECONDS = 2.0
"""For one file: its sender waits for it, and so do those who come after."""

MAX_STEM_LENGTH = 80
"""Characters of a name before its ending: with any letters no more bytes than file systems take."""

_LOG = logging.getLogger("opora.ingest")

_PROGRAM = program_of("components.ingest.attachment_worker")
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
"""Formats that customers may send: what they photograph, scan and write. No page, no program, no archive."""

_ENDINGS = {"jpeg": (".jpg", ".jpeg"), "plain": (".txt", ".log", ".md"), "csv": (".csv", ".tsv")}


class AttachmentScanner(Processes):
    """Tells what a file is. Thread-safe.

    :param workers: how many files are read at once; further callers wait.
    """

    def __init__(self, workers: int = 2) -> None:
        super().__init__(_PROGRAM, workers=workers, seconds=SECONDS, memory=MEMORY, requests=200)

    def format_of(self, name: str, data: bytes) -> str:
        """The format of a file by its content, one of `MEDIA_TYPES`.

        :raises UnsupportedMedia: `attachment_unsupported`.
        :raises Invalid: `attachment_unreadable`: damaged, locked, or too much to read.
        :raises TryAgain: `reader_unavailable`.
        """
        try:
            answer = _Answer.model_validate_json(self.ask(name, data))
        except (ValidationError, CallerError) as unreadable:
            raise Invalid("attachment_unreadable") from unreadable
        if answer.cause:
            _LOG.warning("a reader failed: %s", answer.cause)
        if answer.error is not None:
            if answer.error.kind == UnsupportedMedia.__name__:
                raise UnsupportedMedia("attachment_unsupported")
            raise Invalid("attachment_unreadable")
        if answer.format not in MEDIA_TYPES:
            raise UnsupportedMedia("attachment_unsupported")
        return answer.format


def download_name(name: str, form: str) -> str:
    """The name that a file is saved under: no path, nothing that another system reads as more than a letter.

    It ends as its format does, so that the file opens as what it was read as.
    """
    # Telephones and screenshots put characters into names that their owner has never seen.
    plain = re.sub(r'[:*?"<>|\x00]', "_", "".join(one if one.isprintable() else " " for one in name))
    path = PurePosixPath(plain.replace("\\", "/").strip(" ./"))
    endings = _ENDINGS.get(form, (f".{form}",))
    ending = path.suffix if path.suffix.lower() in endings else endings[0]
    stem = path.name.removesuffix(ending).strip(" .")
    return f"{stem[:MAX_STEM_LENGTH] or 'file'}{ending}"


class _Fault(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    kind: StrictStr


class _Answer(BaseModel):
    """What a worker may say. It is not trusted: the file that it has read may be speaking."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: StrictStr = ""
    error: _Fault | None = None
    cause: StrictStr = Field("", max_length=500, pattern=r"^[\w.:> ]*$")
    """Where a reader failed on a file, with nothing of the file in it: for the log."""

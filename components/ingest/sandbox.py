"""Reads files in worker processes, where they can do no harm.

The threat: a file made to hang its reader, to fill the memory, to crash a native library, or to run code through a
fault in one. `components.ingest.process` confines the workers; what one answers is bounded, is JSON and is checked like
any other input. `components.ingest.file_worker` is the other end.
"""

import logging

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, StrictInt, StrictStr, ValidationError

from components.ingest.formats.parsed import FileFlag, Markup, Parsed
from components.ingest.process import Processes, program_of
from tenants.errors import CallerError, Invalid, Malformed, NotFound, TooLarge, UnsupportedMedia

SECONDS = 18.0
"""So that a job over one file, its way here and back included, ends within 20."""

MEMORY = 512 * 10**6

_LOG = logging.getLogger("opora.ingest")
_PROGRAM = program_of("components.ingest.file_worker")
_KINDS = {kind.__name__: kind for kind in (CallerError, Invalid, Malformed, NotFound, TooLarge, UnsupportedMedia)}


class Sandbox(Processes):
    """Reads files in worker processes. Thread-safe.

    :param workers: how many files are read at once; further callers wait.
    :param seconds: wall time of one file, after which its worker is killed.
    :param memory: bytes of address space of a worker.
    :param files: after so many a worker is replaced.
    """

    def __init__(self, workers: int = 2, seconds: float = SECONDS, memory: int = MEMORY, files: int = 200) -> None:
        super().__init__(_PROGRAM, workers=workers, seconds=seconds, memory=memory, requests=files)

    def read(self, name: str, data: bytes) -> Parsed:
        """A file as one document.

        :param name: the file's name, or the address of a page.
        :raises CallerError: what the format's reader found wrong; `file_too_slow` and `file_too_demanding` when a limit
            was reached, `file_damaged` when the reader did not survive the file.
        :raises TryAgain: `reader_unavailable`: no worker could be started.
        """
        return _parsed(self.ask(name, data))


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: StrictStr
    code: StrictStr = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    params: dict[StrictStr, StrictStr | StrictInt | FiniteFloat]

    def error(self) -> CallerError:
        return _KINDS.get(self.kind, Invalid)(self.code, **self.params)


class _Answer(BaseModel):
    """The answer of a worker. It is not trusted: the file that it has read may have written it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: StrictStr = ""
    text: StrictStr = ""
    markup: Markup = "markdown"
    meta: dict[StrictStr, JsonValue] = {}
    flags: tuple[FileFlag, ...] = ()
    pages: StrictInt = 0
    error: _Fault | None = None
    cause: StrictStr = Field("", max_length=500, pattern=r"^[\w.:> ]*$")
    """Where a reader failed on a file: for the log, so that nothing of the file can be in it."""


def _parsed(answer: bytes) -> Parsed:
    try:
        reply = _Answer.model_validate_json(answer)
    except ValidationError as garbled:
        raise Invalid("file_damaged") from garbled
    if reply.cause:
        _LOG.warning("a reader failed: %s", reply.cause)
    if reply.error is not None:
        raise reply.error.error()
    return Parsed(reply.title, reply.text, reply.markup, reply.meta, reply.flags, reply.pages)

"""Reads files in worker processes, where they can do no harm.

The threat: a file or a text made to hang its reader, to fill the memory, to crash a native library, or to run code
through a fault in one, and so to take over the worker that reads it, and through its answers this process or the next
document. `components.ingest.process` confines the workers; an answer is bounded, is JSON of a known form, and is
checked like any other input. `components.ingest.worker` is the other end.
"""

import logging
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, StrictInt, StrictStr, ValidationError

from components.ingest.formats.parsed import FileFlag, Markup, Parsed
from components.ingest.process import Processes, program_of
from tenants.core.errors import CallerError, Invalid, Malformed, NotFound, TooLarge, UnsupportedMedia

SECONDS = 18.0
"""Time limit of a file, so that a job over one file, with all transfers, ends within 20 seconds."""

MEMORY = 512 * 10**6

_LOG = logging.getLogger("opora.ingest")
_PROGRAM = program_of("components.ingest.worker")
_KINDS = {kind.__name__: kind for kind in (CallerError, Invalid, Malformed, NotFound, TooLarge, UnsupportedMedia)}


class Form(BaseModel):
    """Part of an answer: its permitted fields, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_Result = TypeVar("_Result")


class _Fault(Form):
    kind: StrictStr
    code: StrictStr = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    params: dict[StrictStr, StrictStr | StrictInt | FiniteFloat]


class Answer(Form, Generic[_Result]):
    """Answer of a worker: a result or an error."""

    result: _Result | None = None
    error: _Fault | None = None
    cause: StrictStr = Field("", max_length=500, pattern=r"^[\w.:> ]*$")
    """Location of a reader's failure, for the log, so it must not contain text of the file."""


class _ParsedForm(Form):
    title: StrictStr = ""
    text: StrictStr = ""
    markup: Markup = "markdown"
    meta: dict[StrictStr, JsonValue] = {}
    flags: tuple[FileFlag, ...] = ()
    pages: StrictInt = 0


class Workers(Processes):
    """Worker processes for the verbs of `components.ingest.worker`. Thread-safe.

    :param workers: how many requests are answered at once; further callers wait.
    :param seconds: wall time of one request, after which its worker is killed.
    :param memory: bytes of address space of a worker.
    :param requests: after so many a worker is replaced.
    """

    def __init__(self, workers: int = 2, seconds: float = SECONDS, memory: int = MEMORY, requests: int = 200) -> None:
        super().__init__(_PROGRAM, workers=workers, seconds=seconds, memory=memory, requests=requests)

    def call(self, verb: str, name: str, data: bytes, form: type[Answer[_Result]]) -> _Result:
        """Return the checked result of a request.

        :raises CallerError: the worker's own error; `file_too_slow` and `file_too_demanding` when a limit was reached,
            `file_damaged` when the worker died or its answer has another form.
        :raises TryAgain: `reader_unavailable`: no worker could be started.
        """
        try:
            answer = form.model_validate_json(self.ask(f"{verb} {name}", data))
        except ValidationError as garbled:
            raise Invalid("file_damaged") from garbled
        if answer.cause:
            _LOG.warning("a reader failed: %s", answer.cause)
        if answer.error is not None:
            fault = answer.error
            raise _KINDS.get(fault.kind, Invalid)(fault.code, **fault.params)
        if answer.result is None:
            raise Invalid("file_damaged")
        return answer.result


class Sandbox(Workers):
    """Reads files in worker processes. Thread-safe."""

    def read(self, name: str, data: bytes) -> Parsed:
        """Read a file as one document.

        :param name: the file's name, or the address of a page.
        :raises CallerError: the error of the format's reader, and those of `call`.
        :raises TryAgain: `reader_unavailable`.
        """
        form = self.call("read", name, data, Answer[_ParsedForm])
        return Parsed(form.title, form.text, form.markup, form.meta, form.flags, form.pages)

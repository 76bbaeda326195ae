"""Report of an ingest run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from components.ingest.document import Flagged, Refusal
from components.turn import Frozen


class RefusalJson(TypedDict):
    """A refusal for a program: `params` fill the text of `code`."""

    code: str
    params: dict[str, str | int | float]
    source: str
    line: int
    doc_id: str


class FlaggedJson(TypedDict):
    """A flagged document for a program: the text of a flag is `documents.flag.<flag>`."""

    doc_id: str
    flags: list[str]


class ReportJson(TypedDict):
    """An `IngestReport` for a program."""

    added: int
    updated: int
    unchanged: int
    removed: int
    chunks_written: int
    chunks_kept: int
    chunks_removed: int
    healed: bool
    seconds: float
    errors: list[RefusalJson]
    flagged: list[FlaggedJson]


class ProgressJson(TypedDict):
    """A `Progress` for a program."""

    documents: int
    total: int
    pages: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Progress(Frozen):
    """Progress of a run. `total` documents are expected, 0 when unknown; `chunks` were written or kept.

    :param pages: pages and sheets read; formats that have none add nothing.
    """

    documents: int
    total: int
    chunks: int
    pages: int = 0

    def as_json(self) -> ProgressJson:
        """Return the progress for a program."""
        return ProgressJson(documents=self.documents, total=self.total, pages=self.pages, chunks=self.chunks)


OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class IngestReport(Frozen):
    """Changes of a run, in documents and in chunks, and its refusals.

    :param chunks_written: encoded and stored; `chunks_kept` belong to changed documents and did not change themselves.
    :param errors: one entry per document, line or file that was not taken; all others were.
    :param flagged: new and changed documents that were taken and that an operator should look at.
    :param healed: the previous run was interrupted and has been repaired first.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks_written: int = 0
    chunks_kept: int = 0
    chunks_removed: int = 0
    errors: tuple[Refusal, ...] = ()
    flagged: tuple[Flagged, ...] = ()
    healed: bool = False
    seconds: float = 0.0

    def as_json(self) -> ReportJson:
        """Return the report for a program."""
        return ReportJson(
            added=self.added,
            updated=self.updated,
            unchanged=self.unchanged,
            removed=self.removed,
            chunks_written=self.chunks_written,
            chunks_kept=self.chunks_kept,
            chunks_removed=self.chunks_removed,
            healed=self.healed,
            seconds=round(self.seconds, 3),
            errors=[
                RefusalJson(
                    code=refusal.error.code,
                    params=refusal.error.params,
                    source=refusal.source,
                    line=refusal.line,
                    doc_id=refusal.doc_id,
                )
                for refusal in self.errors
            ],
            flagged=[FlaggedJson(doc_id=document.doc_id, flags=list(document.flags)) for document in self.flagged],
        )

"""Report of an ingest run."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from components.ingest.document import Flagged, Refusal
from components.turn import Frozen


@dataclass(frozen=True, slots=True)
class Progress(Frozen):
    """Progress of a run. `total` documents are expected, 0 when unknown; `chunks` were written or kept.

    :param pages: pages and sheets read; formats that have none add nothing.
    """

    documents: int
    total: int
    chunks: int
    pages: int = 0


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

    def as_json(self) -> dict[str, Any]:
        """Return the report for a program. A refusal's `params` fill the text of its `code`."""
        counts = {part.name: getattr(self, part.name) for part in fields(self)}
        return counts | {
            "seconds": round(self.seconds, 3),
            "errors": [
                {
                    "code": refusal.error.code,
                    "params": refusal.error.params,
                    "source": refusal.source,
                    "line": refusal.line,
                    "doc_id": refusal.doc_id,
                }
                for refusal in self.errors
            ],
            "flagged": [{"doc_id": document.doc_id, "flags": list(document.flags)} for document in self.flagged],
        }

"""A document on trial: part of the knowledge base inside a block, and never stored.

It shows how an article would answer before customers see it. Everything that a question reads of the tenant's
knowledge includes the document: the index, the lexicon, the documents' records.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenants.core.scoped import scoped

if TYPE_CHECKING:
    from tenants.core.points import Point
    from tenants.knowledge.documents import DocumentRecord
    from tenants.knowledge.lexicon import ChunkTerms


@dataclass(frozen=True, slots=True)
class WrittenChunks:
    """Chunks of one document as stored, or as they would be stored."""

    points: "Sequence[Point]" = ()
    terms: "Sequence[ChunkTerms]" = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TrialDocument:
    """A document as ingestion would store it.

    :param tenant_id: the owner of the knowledge base.
    :param encoder: the encoder settings of its chunks; `dimensions` is the size of dense vectors, 0 for none.
    :param replaced: the chunks of the current version, if there is one.
    """

    tenant_id: str
    record: "DocumentRecord"
    chunks: WrittenChunks
    encoder: str
    dimensions: int
    replaced: WrittenChunks = WrittenChunks()


_CURRENT: ContextVar[TrialDocument | None] = ContextVar("opora_trial", default=None)


def current(tenant_id: str) -> TrialDocument | None:
    """Return the document on trial in this call, if it belongs to the tenant."""
    document = _CURRENT.get()
    return document if document is not None and document.tenant_id == tenant_id else None


def including(document: TrialDocument) -> AbstractContextManager[TrialDocument]:
    """Run the block with the document as part of the knowledge base."""
    return scoped(_CURRENT, document)

"""A document on trial: part of the knowledge base for whoever is in the block, and stored nowhere.

So it can be asked what an article would answer before customers see it. Everything that a question reads of the
tenant's knowledge takes the document into account: the index, the lexicon, the documents' records.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenants.core.points import Point
    from tenants.knowledge.documents import DocumentRecord
    from tenants.knowledge.lexicon import ChunkTerms


@dataclass(frozen=True, slots=True)
class WrittenChunks:
    """Chunks of one document as they are, or would be, stored."""

    points: "Sequence[Point]" = ()
    terms: "Sequence[ChunkTerms]" = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TrialDocument:
    """A document as ingesting it would store it.

    :param tenant_id: whose knowledge base it belongs to.
    :param encoder: how its chunks are encoded; `dimensions` are those of their dense vectors, 0 for none.
    :param replaced: the chunks of the version in force, if there is one.
    """

    tenant_id: str
    record: "DocumentRecord"
    chunks: WrittenChunks
    encoder: str
    dimensions: int
    replaced: WrittenChunks = WrittenChunks()


_CURRENT: ContextVar[TrialDocument | None] = ContextVar("opora_trial", default=None)


def current(tenant_id: str) -> TrialDocument | None:
    """The document on trial in this call, if it is the tenant's."""
    document = _CURRENT.get()
    return document if document is not None and document.tenant_id == tenant_id else None


@contextmanager
def including(document: TrialDocument) -> Iterator[None]:
    """Let everything in the block read the knowledge base as if the document were part of it."""
    token = _CURRENT.set(document)
    try:
        yield
    finally:
        _CURRENT.reset(token)

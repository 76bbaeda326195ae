"""`/edges`, `/rejected`, `/contradictions` and `/agreements`: relations between documents and between passages.

To make one of two contradicting documents take precedence, add an edge: `PUT /edges` with `supersedes`.
"""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field, StringConstraints

from components.turn import EdgeKind
from pipelines.ask.articles import contradictions
from pipelines.ask.articles.contradictions import Contradiction
from pipelines.routes import OpenRouter, opens
from tenants.core.validation import FrozenModel
from tenants.knowledge import agreements, document_edges, rejected
from tenants.knowledge.agreements import Agreement
from tenants.knowledge.document_edges import MAX_LISTED, MAX_RELATIONS, Edge
from tenants.knowledge.rejected import MAX_REASON_LENGTH, MAX_TEXT_LENGTH, Rejected
from ui.api.library import Day, Id

_EDGES = "/edges"
_REJECTED = "/rejected"
_AGREEMENTS = "/agreements"
_ChunkId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_LENGTH)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON_LENGTH)]


class RelationsQuery(FrozenModel):
    """A page of a list."""

    limit: int = Field(MAX_LISTED, ge=1, le=MAX_LISTED)
    offset: int = Field(0, ge=0, le=MAX_RELATIONS)


class EdgesQuery(RelationsQuery):
    """A page of all edges, or of those of one document."""

    doc_id: str | None = None


class EdgeKey(FrozenModel):
    """Key of an edge, which points from `from_doc` to `to_doc`."""

    from_doc: Id
    kind: EdgeKind
    to_doc: Id


class EdgeRequest(EdgeKey):
    """An edge to set. `weight` 0 switches off an edge that the document `from_doc` declares."""

    weight: Annotated[float, Field(ge=0, le=1)] = 1.0

    def edge(self) -> Edge:
        return Edge(self.from_doc, self.kind, self.to_doc, self.weight)


class RejectedRequest(FrozenModel):
    """An approach to reject. Customers may read the reason. Without a day it is rejected today."""

    text: _Text
    reason: _Reason = ""
    day: Day | None = None
    doc_id: Id | None = None

    def rejected(self) -> Rejected:
        return Rejected(self.text, self.reason, self.day or "", self.doc_id)


class EdgesAnswer(BaseModel):
    """Edges, heaviest first."""

    edges: tuple[Edge, ...]


class RejectedPart(BaseModel, from_attributes=True):
    """A rejected approach. `declared` is true if the document `doc_id` declares it."""

    rejected_id: str
    text: str
    reason: str
    day: str
    doc_id: str | None
    declared: bool


class RejectedAnswer(BaseModel):
    """Rejected approaches, newest first."""

    rejected: tuple[RejectedPart, ...]


class PairRequest(FrozenModel):
    """Two passages by chunk id, in any order."""

    chunk_id: _ChunkId
    other_chunk_id: _ChunkId


class ContradictionsAnswer(BaseModel):
    """Open contradictions, newest first."""

    contradictions: tuple[Contradiction, ...]


class AgreementsAnswer(BaseModel):
    """Pairs of passages marked as consistent, newest first."""

    agreements: tuple[Agreement, ...]


router = OpenRouter("ingest", limit=20_000, tags=["relations"])


@router.get(_EDGES)
def list_edges(query: Annotated[EdgesQuery, Query()]) -> EdgesAnswer:
    """List edges, or those of one document in both directions."""
    return EdgesAnswer(edges=document_edges.page(query.doc_id, limit=query.limit, offset=query.offset))


@router.put(_EDGES)
def put_edge(body: EdgeRequest) -> Edge:
    """Add an edge, or replace the existing one of this kind between the two documents."""
    return document_edges.put(body.edge())


@router.delete(_EDGES)
def remove_edge(query: Annotated[EdgeKey, Query()]) -> EdgesAnswer:
    """Remove an edge. Returns the first page of the remaining edges of its `from_doc`."""
    document_edges.remove(query.from_doc, query.kind, query.to_doc)
    return EdgesAnswer(edges=document_edges.of(query.from_doc))


@router.get(_REJECTED)
def list_rejected(query: Annotated[RelationsQuery, Query()]) -> RejectedAnswer:
    """List rejected approaches."""
    return RejectedAnswer(rejected=rejected.page(limit=query.limit, offset=query.offset))


@router.put(_REJECTED)
def put_rejected(body: RejectedRequest) -> RejectedPart:
    """Reject an approach, or update the reason and date of an existing rejection."""
    return RejectedPart.model_validate(rejected.put(body.rejected()))


@router.delete("/rejected/{rejected_id}")
def remove_rejected(rejected_id: str) -> RejectedAnswer:
    """Withdraw a rejection. Returns the first page of the remaining ones."""
    rejected.remove(rejected_id)
    return list_rejected(RelationsQuery())


@router.get("/contradictions")
def list_contradictions() -> ContradictionsAnswer:
    """List documents that contradict each other."""
    return ContradictionsAnswer(contradictions=contradictions.undecided())


@router.get(_AGREEMENTS)
def list_agreements(query: Annotated[RelationsQuery, Query()]) -> AgreementsAnswer:
    """List pairs of passages marked as consistent."""
    return AgreementsAnswer(agreements=agreements.page(limit=query.limit, offset=query.offset))


@router.put(_AGREEMENTS)
@opens(limit=2_000)
def put_agreement(body: PairRequest) -> AgreementsAnswer:
    """Mark two passages as consistent. Returns the first page of such pairs."""
    contradictions.agree(body.chunk_id, body.other_chunk_id)
    return list_agreements(RelationsQuery())


@router.delete(_AGREEMENTS)
def remove_agreement(query: Annotated[PairRequest, Query()]) -> AgreementsAnswer:
    """Undo the mark. Returns the first page of the remaining pairs."""
    agreements.remove(query.chunk_id, query.other_chunk_id)
    return list_agreements(RelationsQuery())

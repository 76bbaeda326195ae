"""Requests and responses of `/edges` and `/rejected`, over HTTP and as JSON on the command line."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from components.turn import EdgeKind
from pipelines.ingest.library_contract import Day, Id, Request
from tenants.knowledge.edges import MAX_LISTED, MAX_RELATIONS, Edge
from tenants.knowledge.rejected import MAX_REASON_LENGTH, MAX_TEXT_LENGTH, Rejected

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_LENGTH)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON_LENGTH)]


class RelationsQuery(Request):
    """A page of a list."""

    limit: int = Field(MAX_LISTED, ge=1, le=MAX_LISTED)
    offset: int = Field(0, ge=0, le=MAX_RELATIONS)


class EdgesQuery(RelationsQuery):
    """A page of all edges, or of those of one document."""

    doc_id: str | None = None


class EdgeKey(Request):
    """Key of an edge, which points from `from_doc` to `to_doc`."""

    from_doc: Id
    kind: EdgeKind
    to_doc: Id


class EdgeRequest(EdgeKey):
    """An edge to set. `weight` 0 switches off an edge that the document `from_doc` declares."""

    weight: Annotated[float, Field(ge=0, le=1)] = 1.0

    def edge(self) -> Edge:
        return Edge(self.from_doc, self.kind, self.to_doc, self.weight)


class RejectedRequest(Request):
    """An approach to reject. Customers may read the reason. Without a day it is rejected today."""

    text: _Text
    reason: _Reason = ""
    day: Day | None = None
    doc_id: Id | None = None

    def rejected(self) -> Rejected:
        return Rejected(self.text, self.reason, self.day or "", self.doc_id)


class EdgesAnswer(BaseModel):
    """Edges, weightiest first."""

    edges: tuple[Edge, ...]


class RejectedPart(BaseModel):
    """A rejected approach. `declared` is true if the document `doc_id` declares it."""

    model_config = ConfigDict(from_attributes=True)

    rejected_id: str
    text: str
    reason: str
    day: str
    doc_id: str | None
    declared: bool


class RejectedAnswer(BaseModel):
    """Rejected approaches, newest first."""

    rejected: tuple[RejectedPart, ...]

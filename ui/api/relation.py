"""`/edges` and `/rejected` over HTTP. The gate has checked the token and set the tenant."""

from typing import Annotated

from fastapi import Query

from pipelines.ingest.relation_contract import (
    EdgeKey,
    EdgeRequest,
    EdgesAnswer,
    RejectedAnswer,
    RejectedPart,
    RejectedRequest,
    rejected_answer,
)
from pipelines.routes import OpenRouter
from tenants.knowledge import edges, rejected
from tenants.knowledge.edges import Edge

_EDGES = "/edges"
_REJECTED = "/rejected"
_REJECTED_ITEM = "/rejected/{rejected_id}"
_BODY_BYTES = 20_000

router = OpenRouter("ingest", limit=_BODY_BYTES, tags=["relations"])


@router.get(_EDGES)
def list_edges(doc_id: str | None = None) -> EdgesAnswer:
    """List all edges, or those of one document in both directions."""
    return EdgesAnswer(edges=edges.all() if doc_id is None else edges.of(doc_id))


@router.put(_EDGES)
def put_edge(body: EdgeRequest) -> Edge:
    """Add an edge, or replace the existing one of this kind between the two documents."""
    return edges.put(body.edge())


@router.delete(_EDGES)
def remove_edge(query: Annotated[EdgeKey, Query()]) -> EdgesAnswer:
    """Remove an edge. Returns the remaining edges of its `from_doc`."""
    edges.remove(query.from_doc, query.kind, query.to_doc)
    return EdgesAnswer(edges=edges.of(query.from_doc))


@router.get(_REJECTED)
def list_rejected() -> RejectedAnswer:
    """List all rejected approaches."""
    return rejected_answer(rejected.all())


@router.put(_REJECTED)
def put_rejected(body: RejectedRequest) -> RejectedPart:
    """Reject an approach, or update the reason and date of an existing rejection."""
    return RejectedPart.model_validate(rejected.put(body.rejected()))


@router.delete(_REJECTED_ITEM)
def remove_rejected(rejected_id: str) -> RejectedAnswer:
    """Withdraw a rejection. Returns the remaining ones."""
    rejected.remove(rejected_id)
    return rejected_answer(rejected.all())

"""Links between a tenant's documents: declared by the documents themselves, or set by operators.

An edge from `a` to `b` reads like its kind: `a` supersedes `b`, `a` depends on `b`. There is at most one edge of a kind
from one document to another. It is deleted with its document; an edge declared by `a` outlives `b`, because `a` still
declares it, and takes effect again when `b` comes back.
"""

from dataclasses import dataclass

from sqlalchemy import or_

from tenants.accounts.registry import changing_relations
from tenants.core.errors import Invalid, NotFound
from tenants.knowledge.tables import AgreementRow, DocumentRow, EdgeRow, RejectedRow
from tenants.storage.mapping import columns_of, read, record_of, selected
from tenants.storage.tenant_session import TenantSession

SUPERSEDES = "supersedes"
MAX_RELATIONS = 20_000
"""Edges, rejected approaches and agreements of a tenant. After each change, the next question reads all of them."""
MAX_LISTED = 500
"""Relations on one page of a list."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two documents.

    :param weight: 0..1, how much it matters. 0 switches off a tie that a document declares.
    :param declared: declared by the document `from_doc`; otherwise set by an operator, who takes precedence.
    """

    from_doc: str
    kind: str
    to_doc: str
    weight: float = 1.0
    declared: bool = False

    def values(self) -> dict[str, object]:
        """Return the columns to store."""
        return columns_of(self)


def put(edge: Edge) -> Edge:
    """Add an operator's edge, or replace the edge of the same kind between the two documents.

    Raises `Invalid` (`edge_to_itself`, `edge_weight_invalid`, `relations_too_many`) and `NotFound`
    (`document_unknown`).
    """
    check(edge)
    with changing_relations() as session:
        for doc_id in (edge.from_doc, edge.to_doc):
            if session.find(DocumentRow, doc_id) is None:
                raise NotFound("document_unknown", doc_id=doc_id)
        check_room(session, EdgeRow, edge.from_doc, edge.kind, edge.to_doc)
        row = session.merge(EdgeRow(**edge.values()))
        row.declared = False
    return record_of(Edge, row)


def remove(from_doc: str, kind: str, to_doc: str) -> None:
    """Take an edge away. Raises `NotFound` (`edge_unknown`). A declared one returns with its document's next change."""
    with changing_relations() as session:
        session.delete(session.existing(EdgeRow, from_doc, kind, to_doc))


def of(doc_id: str) -> tuple[Edge, ...]:
    """Return the first page of the document's edges in both directions, largest weight first."""
    return page(doc_id)


def all() -> tuple[Edge, ...]:
    """Return all edges of the tenant, largest weight first."""
    return page(limit=None)


def page(doc_id: str | None = None, *, limit: int | None = MAX_LISTED, offset: int = 0) -> tuple[Edge, ...]:
    """Return edges of the tenant, or of one document in both directions, largest weight first."""
    query = selected(Edge, EdgeRow)
    if doc_id is not None:
        query = query.where(or_(EdgeRow.from_doc == doc_id, EdgeRow.to_doc == doc_id))
    order = EdgeRow.weight.desc(), EdgeRow.from_doc, EdgeRow.to_doc, EdgeRow.kind
    return read(Edge, query.order_by(*order).limit(limit).offset(offset))


def count_relations(session: TenantSession) -> int:
    """Return the number of edges, rejected approaches and agreements of the tenant."""
    kinds = EdgeRow, RejectedRow, AgreementRow
    return sum(map(session.count, kinds))


def check_room(session: TenantSession, kind: type[EdgeRow | RejectedRow | AgreementRow], *key: str) -> None:
    """Raise `Invalid`, `relations_too_many`, for a new relation of a tenant that has as many as it may."""
    session.lock_tenant()
    if session.find(kind, *key) is None and count_relations(session) >= MAX_RELATIONS:
        raise Invalid("relations_too_many", limit=MAX_RELATIONS)


def check(edge: Edge) -> None:
    """Raise `Invalid` unless the edge joins two documents with a weight in 0..1."""
    if edge.from_doc == edge.to_doc:
        raise Invalid("edge_to_itself", doc_id=edge.from_doc)
    if not 0 <= edge.weight <= 1:
        raise Invalid("edge_weight_invalid")

"""Links between a tenant's documents: declared by the documents themselves, or set by operators.

An edge from `a` to `b` reads like its kind: `a` supersedes `b`, `a` depends on `b`. There is at most one edge of a kind
from one document to another. It is deleted with its document; an edge declared by `a` outlives `b`, because `a` still
declares it, and takes effect again when `b` comes back.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select

from tenants.accounts.registry import changing_relations
from tenants.core.errors import Invalid, NotFound
from tenants.storage.mapping import columns_of, record_of, records
from tenants.storage.tables import DocumentRow, EdgeRow

SUPERSEDES = "supersedes"


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

    def row(self) -> EdgeRow:
        """Return the row to store."""
        return EdgeRow(**columns_of(self))


def put(edge: Edge) -> Edge:
    """Add an operator's edge, or replace the edge of the same kind between the two documents.

    Raises `Invalid` (`edge_to_itself`, `edge_weight_invalid`) and `NotFound` (`document_unknown`).
    """
    check(edge)
    with changing_relations() as session:
        for doc_id in (edge.from_doc, edge.to_doc):
            if session.find(DocumentRow, doc_id) is None:
                raise NotFound("document_unknown", doc_id=doc_id)
        row = session.merge(edge.row())
        row.declared = False
    return record_of(Edge, row)


def remove(from_doc: str, kind: str, to_doc: str) -> None:
    """Take an edge away. Raises `NotFound` (`edge_unknown`). A declared one returns with its document's next change."""
    with changing_relations() as session:
        session.delete(session.existing(EdgeRow, from_doc, kind, to_doc))


def of(doc_id: str) -> tuple[Edge, ...]:
    """Return the document's edges in both directions, largest weight first."""
    return _select(or_(EdgeRow.from_doc == doc_id, EdgeRow.to_doc == doc_id))


def all() -> tuple[Edge, ...]:
    """Return all edges of the tenant, largest weight first."""
    return _select()


def check(edge: Edge) -> None:
    """Raise `Invalid` unless the edge joins two documents with a weight in 0..1."""
    if edge.from_doc == edge.to_doc:
        raise Invalid("edge_to_itself", doc_id=edge.from_doc)
    if not 0 <= edge.weight <= 1:
        raise Invalid("edge_weight_invalid")


def _select(*conditions: ColumnElement[bool]) -> tuple[Edge, ...]:
    order = EdgeRow.weight.desc(), EdgeRow.from_doc, EdgeRow.to_doc, EdgeRow.kind
    return records(Edge, select(EdgeRow).where(*conditions).order_by(*order))

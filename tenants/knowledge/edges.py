"""Links between a tenant's documents: declared by the documents themselves, or set by operators.

An edge from `a` to `b` reads like its kind: `a` supersedes `b`, `a` depends on `b`. There is at most one edge of a kind
from one document to another. It is deleted with its document; an edge declared by `a` outlives `b`, because `a` still
declares it, and takes effect again when `b` comes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, delete, or_, select

from tenants.accounts.registry import changing_relations
from tenants.core.errors import Invalid, NotFound
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of
from tenants.storage.sessions import TenantSession
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


def put(edge: Edge) -> Edge:
    """Add an operator's edge, or replace the edge of the same kind between the two documents.

    Raises `Invalid` (`edge_to_itself`, `edge_weight_invalid`) and `NotFound` (`document_unknown`).
    """
    check(edge)
    with changing_relations() as session:
        for doc_id in (edge.from_doc, edge.to_doc):
            if session.find(DocumentRow, doc_id) is None:
                raise NotFound("document_unknown", doc_id=doc_id)
        row = session.merge(EdgeRow(**columns_of(edge)))
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


def declare(session: TenantSession, doc_ids: Sequence[str], declared: Sequence[Edge]) -> bool:
    """Replace the edges declared by these documents by `declared`. Edges set by an operator are not changed.

    :returns: whether anything changed.
    """
    stored = session.scalars(select(EdgeRow).where(EdgeRow.from_doc.in_(doc_ids))).all()
    rows = {record_of(Edge, row): row for row in stored}
    set_by_operators = {_key(edge) for edge in rows if not edge.declared}
    declarations = {_key(edge): edge for edge in declared if _key(edge) not in set_by_operators}
    obsolete = [row for edge, row in rows.items() if edge.declared and declarations.get(_key(edge)) != edge]
    new = [edge for edge in declarations.values() if edge not in rows]
    for row in obsolete:
        session.delete(row)
    session.flush()
    session.add_all(EdgeRow(**columns_of(edge)) for edge in new)
    return bool(obsolete or new)


def forget(session: TenantSession, doc_ids: Sequence[str]) -> bool:
    """Remove the edges of documents that are removed. Returns whether there were any."""
    theirs = or_(
        EdgeRow.from_doc.in_(doc_ids),
        and_(EdgeRow.to_doc.in_(doc_ids), EdgeRow.declared.is_(False)),
    )
    return bool(session.scalars(delete(EdgeRow).where(theirs).returning(EdgeRow.kind)).all())


def _select(*conditions: ColumnElement[bool]) -> tuple[Edge, ...]:
    query = select(EdgeRow).where(*conditions)
    order = EdgeRow.weight.desc(), EdgeRow.from_doc, EdgeRow.to_doc, EdgeRow.kind
    with database.reading() as session:
        return tuple(record_of(Edge, row) for row in session.scalars(query.order_by(*order)))


def _key(edge: Edge) -> tuple[str, str, str]:
    return edge.from_doc, edge.kind, edge.to_doc

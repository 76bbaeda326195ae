"""Cache of a tenant's edges, rejected approaches and contradictions, reloaded when they change.

The revision is in the registry's record of the tenant, which is in memory anyway. A tenant without relations costs a
question nothing, any other a look-up.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import and_, or_, select

from tenants.accounts import registry
from tenants.core.batches import batches
from tenants.knowledge import agreements, contradictions, edges, rejected
from tenants.knowledge.contradictions import Contradiction
from tenants.knowledge.edges import SUPERSEDES, Edge
from tenants.knowledge.rejected import Rejected
from tenants.storage import database
from tenants.storage.cache import TenantCache
from tenants.storage.mapping import record_of
from tenants.storage.sessions import TenantSession
from tenants.storage.tables import AgreementRow, ContradictionRow, DocumentRow, EdgeRow, RejectedRow

Declared = TypeVar("Declared", Edge, Rejected)


@dataclass(frozen=True, slots=True)
class Relations:
    """A tenant's edges, rejected approaches and contradictions.

    :param edges: by either of their documents, largest weight first; disabled edges are left out.
    :param successors: maps a superseded document to its successor. Documents whose status an operator has set are left
        out.
    :param contradictions: by either of their documents, without pairs that were marked as consistent.
    """

    edges: Mapping[str, tuple[Edge, ...]] = field(default_factory=dict)
    successors: Mapping[str, str] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    contradictions: Mapping[str, tuple[Contradiction, ...]] = field(default_factory=dict)


NONE = Relations()
_MAX_RELATIONS = 200_000


def _size_of(relations: Relations) -> int:
    by_document = (*relations.edges.values(), *relations.contradictions.values())
    return 1 + sum(map(len, by_document)) + len(relations.rejected)


_CACHE: TenantCache[Relations] = TenantCache("relations", _MAX_RELATIONS, _size_of)


def current() -> Relations:
    """Return the tenant's relations, never behind this process and at most seconds behind another."""
    tenant = registry.current()
    if not tenant.relations:
        return NONE
    return _CACHE.get(tenant.key, lambda _: _load(), tenant.relations)


def declare(doc_ids: Sequence[str], ties: Sequence[Edge], approaches: Sequence[Rejected]) -> None:
    """Replace the relations declared by these documents; a run over unchanged relations writes nothing."""
    if not (ties or approaches or registry.current().relations):
        return
    with database.writing() as session:
        known_ties = session.scalars(select(EdgeRow).where(EdgeRow.from_doc.in_(doc_ids)))
        known_approaches = session.scalars(select(RejectedRow).where(RejectedRow.doc_id.in_(doc_ids)))
        changes = (
            _redeclare(session, Edge, known_ties, ties, lambda tie: (tie.from_doc, tie.kind, tie.to_doc)),
            _redeclare(session, Rejected, known_approaches, approaches, lambda approach: approach.rejected_id),
        )
        if any(changes):
            registry.count_relation_change(session)
    registry.expire()


def forget(session: TenantSession, doc_ids: Sequence[str]) -> None:
    """Delete the relations of removed documents. The caller commits, then expires the registry."""
    removed = 0
    for batch in batches(doc_ids):
        # An edge that the other document declares takes effect again when this one comes back.
        set_by_operator = and_(EdgeRow.to_doc.in_(batch), EdgeRow.declared.is_(False))
        removed += session.remove(EdgeRow, or_(EdgeRow.from_doc.in_(batch), set_by_operator))
        removed += session.remove(RejectedRow, RejectedRow.doc_id.in_(batch))
        for pair in (AgreementRow, ContradictionRow):
            removed += session.remove(pair, or_(pair.doc_id.in_(batch), pair.other_doc_id.in_(batch)))
    if removed:
        registry.count_relation_change(session)


def _redeclare(
    session: TenantSession,
    kind: type[Declared],
    rows: Iterable[EdgeRow] | Iterable[RejectedRow],
    declared: Sequence[Declared],
    key: Callable[[Declared], object],
) -> bool:
    """Replace the declarations of documents; what operators have set stays. Return whether anything changed."""
    stored = {record_of(kind, row): row for row in rows}
    set_by_operators = {key(one) for one in stored if not one.declared}
    wanted = {key(one): one for one in declared if key(one) not in set_by_operators}
    obsolete = [row for one, row in stored.items() if one.declared and wanted.get(key(one)) != one]
    new = [one for one in wanted.values() if one not in stored]
    for row in obsolete:
        session.delete(row)
    session.flush()
    session.add_all(one.row() for one in new)
    return bool(obsolete or new)


def _load() -> Relations:
    by_document: dict[str, list[Edge]] = defaultdict(list)
    successors: dict[str, str] = {}
    for edge in edges.all():
        if not edge.weight:
            continue
        by_document[edge.from_doc].append(edge)
        by_document[edge.to_doc].append(edge)
        if edge.kind == SUPERSEDES:
            successors.setdefault(edge.to_doc, edge.from_doc)
    decided = _decided_by_operators(list(successors))
    return Relations(
        {doc_id: tuple(edges) for doc_id, edges in by_document.items()},
        {doc_id: by for doc_id, by in successors.items() if doc_id not in decided},
        rejected.all(),
        _contradictions(),
    )


def _contradictions() -> Mapping[str, tuple[Contradiction, ...]]:
    agreed = {(pair.chunk_id, pair.other_chunk_id) for pair in agreements.all()}
    by_document: dict[str, list[Contradiction]] = defaultdict(list)
    for pair in contradictions.all():
        if (pair.one.chunk_id, pair.other.chunk_id) not in agreed:
            by_document[pair.one.doc_id].append(pair)
            by_document[pair.other.doc_id].append(pair)
    return {doc_id: tuple(pairs) for doc_id, pairs in by_document.items()}


def _decided_by_operators(doc_ids: Sequence[str]) -> frozenset[str]:
    """Return the documents whose status an operator has set: no edge changes that."""
    decided: set[str] = set()
    query = select(DocumentRow.doc_id, DocumentRow.overrides)
    with database.reading() as session:
        for batch in batches(doc_ids):
            rows = session.execute(query.where(DocumentRow.doc_id.in_(batch)))
            decided.update(doc_id for doc_id, overrides in rows if "status" in overrides)
    return frozenset(decided)

"""Cache of a tenant's edges, rejected approaches and contradictions, reloaded when they change.

The revision is in the registry's record of the tenant, which is in memory anyway. A tenant without relations costs a
question nothing, any other a look-up.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import and_, func, or_, select

from tenants.accounts import registry
from tenants.core.batches import batches
from tenants.knowledge import agreements, contradictions, document_edges, rejected
from tenants.knowledge.contradictions import Contradiction
from tenants.knowledge.document_edges import SUPERSEDES, Edge, count_relations
from tenants.knowledge.rejected import Rejected
from tenants.knowledge.tables import AgreementRow, ContradictionRow, DocumentRow, EdgeRow, RejectedRow
from tenants.storage import database
from tenants.storage.cache import TenantCache
from tenants.storage.mapping import selected
from tenants.storage.tenant_session import TenantSession


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
_CACHED_RELATIONS = 200_000
_CHANGED_AT_ONCE = 8
"""Documents whose relations are replaced in one transaction: 4,800 at most."""


def _size_of(relations: Relations) -> int:
    by_document = (*relations.edges.values(), *relations.contradictions.values())
    return 1 + sum(map(len, by_document)) + len(relations.rejected)


_CACHE: TenantCache[Relations] = TenantCache("relations", _CACHED_RELATIONS, _size_of)


def current() -> Relations:
    """Return the tenant's relations, never behind this process and at most seconds behind another."""
    tenant = registry.current()
    if not tenant.relations:
        return NONE
    return _CACHE.get(tenant.key, lambda _: _load(), tenant.relations)


def room_of(doc_ids: Sequence[str]) -> tuple[int, Mapping[str, int]]:
    """Return how many relations the tenant may add, and how many it has of each of these documents."""
    held = Counter[str]()
    with database.reading() as session:
        for batch in batches(doc_ids):
            for owner in (EdgeRow.from_doc, RejectedRow.doc_id):
                counted = select(owner, func.count()).where(owner.in_(batch)).group_by(owner)
                held.update({str(doc_id): count for doc_id, count in session.execute(counted)})
        return max(0, document_edges.MAX_RELATIONS - count_relations(session)), held


def declare(doc_ids: Sequence[str], ties: Sequence[Edge], approaches: Sequence[Rejected]) -> None:
    """Replace the relations declared by these documents; what operators have set stays.

    A run over unchanged relations writes nothing. A transaction covers few documents: on SQLite, others wait for it.
    """
    if not (ties or approaches or registry.current().relations):
        return
    with database.reading() as session:
        stored = _stored(session, doc_ids)
    given: list[Edge | Rejected] = [*ties, *approaches]
    new = {_key(one): one for one in given}
    declared = {key: one for key, one in new.items() if key not in stored or stored[key].declared}
    obsolete = {_owner(one) for key, one in stored.items() if one.declared and declared.get(key) != one}
    changed = obsolete | {_owner(one) for key, one in declared.items() if stored.get(key) != one}
    by_document: dict[str, list[Edge | Rejected]] = defaultdict(list)
    for one in new.values():
        by_document[_owner(one)].append(one)
    for batch in batches((doc_id for doc_id in doc_ids if doc_id in changed), _CHANGED_AT_ONCE):
        with database.writing() as session:
            _redeclare(session, batch, [one for doc_id in batch for one in by_document[doc_id]])
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


def _redeclare(session: TenantSession, doc_ids: Sequence[str], declared: Sequence[Edge | Rejected]) -> None:
    session.remove(EdgeRow, EdgeRow.from_doc.in_(doc_ids), EdgeRow.declared.is_(True))
    session.remove(RejectedRow, RejectedRow.doc_id.in_(doc_ids), RejectedRow.declared.is_(True))
    set_by_operators = _stored(session, doc_ids)
    new = [one for one in declared if _key(one) not in set_by_operators]
    for kind, table in ((Edge, EdgeRow), (Rejected, RejectedRow)):
        if rows := [one.values() for one in new if isinstance(one, kind)]:
            session.insert_rows(table, rows)


def _stored(session: TenantSession, doc_ids: Sequence[str]) -> dict[Hashable, Edge | Rejected]:
    stored: dict[Hashable, Edge | Rejected] = {}
    for batch in batches(doc_ids):
        ties = session.execute(selected(Edge, EdgeRow).where(EdgeRow.from_doc.in_(batch)))
        stored |= {_key(one): one for one in (Edge(*row) for row in ties)}
        approaches = session.execute(selected(Rejected, RejectedRow).where(RejectedRow.doc_id.in_(batch)))
        stored |= {_key(one): one for one in (Rejected(*row) for row in approaches)}
    return stored


def _owner(one: Edge | Rejected) -> str:
    return one.from_doc if isinstance(one, Edge) else one.doc_id or ""


def _key(one: Edge | Rejected) -> Hashable:
    return (one.from_doc, one.kind, one.to_doc) if isinstance(one, Edge) else one.rejected_id


def _load() -> Relations:
    by_document: dict[str, list[Edge]] = defaultdict(list)
    successors: dict[str, str] = {}
    for edge in document_edges.all():
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

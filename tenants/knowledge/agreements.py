"""Pairs of passages that look contradictory but were marked as consistent.

A pair is identified by its two chunks, whose ids cover their text: if either text changes, the pair is up for review
again. It is deleted with either of its documents.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from tenants.accounts.registry import changing_relations
from tenants.core import context
from tenants.core.errors import Invalid
from tenants.knowledge.document_edges import MAX_LISTED, check_room
from tenants.knowledge.tables import AgreementRow
from tenants.storage.mapping import read, selected


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two passages that do not contradict each other."""

    chunk_id: str
    other_chunk_id: str
    doc_id: str
    other_doc_id: str
    decided_by: str
    at: datetime


def put(chunk_id: str, doc_id: str, other_chunk_id: str, other_doc_id: str) -> None:
    """Mark two passages as consistent.

    Raises `Invalid`: `pair_invalid` for a passage and itself, `relations_too_many`.
    """
    if chunk_id == other_chunk_id:
        raise Invalid("pair_invalid")
    (first, first_doc), (second, second_doc) = sorted([(chunk_id, doc_id), (other_chunk_id, other_doc_id)])
    caller = context.current()
    row = AgreementRow(
        chunk_id=first,
        other_chunk_id=second,
        doc_id=first_doc,
        other_doc_id=second_doc,
        decided_by=caller.subject,
        at=datetime.now(UTC),
    )
    with changing_relations() as session:
        check_room(session, AgreementRow, first, second)
        session.merge(row)


def remove(chunk_id: str, other_chunk_id: str) -> None:
    """Take that back. Raises `NotFound` with the code `pair_unknown`."""
    first, second = sorted((chunk_id, other_chunk_id))
    with changing_relations() as session:
        session.delete(session.existing(AgreementRow, first, second))


def all() -> tuple[Agreement, ...]:
    """Return all pairs of the tenant, newest first."""
    return page(limit=None)


def page(*, limit: int | None = MAX_LISTED, offset: int = 0) -> tuple[Agreement, ...]:
    """Return pairs of the tenant, newest first."""
    order = AgreementRow.at.desc(), AgreementRow.chunk_id, AgreementRow.other_chunk_id
    return read(Agreement, selected(Agreement, AgreementRow).order_by(*order).limit(limit).offset(offset))

"""Pairs of passages that contradict each other, found when documents change.

A pair is identified by its two chunks, whose ids cover their text: if either text changes, the pair is deleted. It is
also deleted with either of its documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select

from tenants.accounts import registry
from tenants.knowledge.tables import ContradictionRow
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of


@dataclass(frozen=True, slots=True)
class Side:
    """A sentence of a pair; `start` and `end` are character offsets into the chunk's text."""

    chunk_id: str
    doc_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sentences of two documents, the smaller chunk id first.

    :param kind: `number`, `date`, `code` or `negation`.
    :param at: when the pair was found.
    """

    kind: str
    one: Side
    other: Side
    at: datetime


def replace(doc_ids: Sequence[str], found: Sequence[Contradiction]) -> None:
    """Replace the contradictions of these documents by `found`; known pairs keep their rows."""
    if not (found or registry.current().relations):
        return
    theirs = or_(ContradictionRow.doc_id.in_(doc_ids), ContradictionRow.other_doc_id.in_(doc_ids))
    with database.writing() as session:
        stored = session.scalars(select(ContradictionRow).where(theirs))
        known = {_key(row): row for row in stored}
        rows = {_key(row): row for row in map(_row, found)}
        for key in known.keys() - rows.keys():
            session.delete(known[key])
        for key in rows.keys() - known.keys():
            session.merge(rows[key])
        if known.keys() != rows.keys():
            registry.count_relation_change(session)
    registry.expire()


def all() -> tuple[Contradiction, ...]:
    """Return all pairs of the tenant, newest first."""
    query = select(ContradictionRow)
    with database.reading() as session:
        rows = session.scalars(query.order_by(ContradictionRow.at.desc(), ContradictionRow.chunk_id))
        return tuple(map(_contradiction, rows))


def _key(row: ContradictionRow) -> tuple[str, str]:
    return row.chunk_id, row.other_chunk_id


def _row(pair: Contradiction) -> ContradictionRow:
    first, second = sorted((pair.one, pair.other), key=lambda side: side.chunk_id)
    others = {f"other_{name}": value for name, value in columns_of(second).items()}
    return ContradictionRow(kind=pair.kind, at=pair.at, **columns_of(first), **others)


def _contradiction(row: ContradictionRow) -> Contradiction:
    second = Side(row.other_chunk_id, row.other_doc_id, row.other_start, row.other_end)
    return Contradiction(row.kind, record_of(Side, row), second, row.at)

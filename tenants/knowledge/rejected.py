"""Approaches that a tenant has rejected, with reasons, so that answers do not propose them.

Documents bring their own; operators add others, with or without a document that they belong to. One that belongs to a
document is gone with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tenants.accounts.registry import changing_relations
from tenants.core import context
from tenants.core.errors import NotFound
from tenants.storage import database
from tenants.storage.models import DocumentRow, RejectedRow

MAX_TEXT_LENGTH = 300
MAX_REASON_LENGTH = 1_000
"""Characters. An approach is named in a sentence; a longer text would cover every question."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """One rejected approach.

    :param text: what is not to be done, in the words somebody would propose it in.
    :param reason: why; customers may read it.
    :param day: ISO 8601 day of the decision.
    :param doc_id: the document it belongs to.
    :param declared: the document says so itself; otherwise an operator does.
    """

    text: str
    reason: str = ""
    day: str = ""
    doc_id: str | None = None
    declared: bool = False

    @property
    def rejected_id(self) -> str:
        """The same words of the same document are the same approach."""
        return sha256(f"{self.doc_id or ''}\n{' '.join(self.text.casefold().split())}".encode()).hexdigest()[:12]


def put(approach: Rejected) -> Rejected:
    """Add an operator's rejected approach, or replace the reason and day of the same one.

    Raises `NotFound` (`document_unknown`) when it belongs to a document that the tenant does not have.
    """
    row = _row(approach)
    row.declared = False
    with changing_relations() as session:
        if approach.doc_id is not None and session.get(DocumentRow, (row.tenant_id, approach.doc_id)) is None:
            raise NotFound("document_unknown", doc_id=approach.doc_id)
        session.merge(row)
    return _rejected(row)


def remove(rejected_id: str) -> None:
    """Remove one. Raises `NotFound` (`rejected_unknown`). A declared one returns with its document's next change."""
    with changing_relations() as session:
        row = session.get(RejectedRow, (context.current().tenant_id, rejected_id))
        if row is None:
            raise NotFound("rejected_unknown")
        session.delete(row)


def all() -> tuple[Rejected, ...]:
    """Every rejected approach of the tenant, newest first."""
    query = select(RejectedRow).where(RejectedRow.tenant_id == context.current().tenant_id)
    with database.reading() as session:
        rows = session.scalars(query.order_by(RejectedRow.day.desc(), RejectedRow.rejected_id))
        return tuple(_rejected(row) for row in rows)


def declare(session: Session, doc_ids: Sequence[str], declared: Sequence[Rejected]) -> bool:
    """Make `declared` all that these documents say about themselves. An operator's entry stays as it is.

    :returns: whether anything changed.
    """
    chosen = RejectedRow.tenant_id == context.current().tenant_id, RejectedRow.doc_id.in_(doc_ids)
    stored = {_rejected(row): row for row in session.scalars(select(RejectedRow).where(*chosen))}
    set_by_operators = {approach.rejected_id for approach in stored if not approach.declared}
    declarations = {
        approach.rejected_id: approach for approach in declared if approach.rejected_id not in set_by_operators
    }
    obsolete = [row for approach, row in stored.items() if approach.declared and approach not in declarations.values()]
    new = [approach for approach in declarations.values() if approach not in stored]
    for row in obsolete:
        session.delete(row)
    session.flush()
    session.add_all(map(_row, new))
    return bool(obsolete or new)


def forget(session: Session, doc_ids: Sequence[str]) -> bool:
    """Remove what belongs to documents that are removed. Returns whether there was any."""
    chosen = RejectedRow.tenant_id == context.current().tenant_id, RejectedRow.doc_id.in_(doc_ids)
    return bool(session.scalars(delete(RejectedRow).where(*chosen).returning(RejectedRow.rejected_id)).all())


def _row(approach: Rejected) -> RejectedRow:
    return RejectedRow(
        tenant_id=context.current().tenant_id,
        rejected_id=approach.rejected_id,
        text=approach.text,
        reason=approach.reason,
        day=approach.day or datetime.now(UTC).date().isoformat(),
        doc_id=approach.doc_id,
        declared=approach.declared,
    )


def _rejected(row: RejectedRow) -> Rejected:
    return Rejected(row.text, row.reason, row.day, row.doc_id, row.declared)

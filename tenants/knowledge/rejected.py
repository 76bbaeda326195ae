"""Approaches that a tenant has rejected, with reasons, so that answers do not propose them.

Documents declare them; operators add others, with or without a document. An approach that belongs to a document is
deleted with it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from tenants.accounts.registry import changing_relations
from tenants.core.errors import NotFound
from tenants.knowledge.document_edges import MAX_LISTED, check_room
from tenants.knowledge.tables import DocumentRow, RejectedRow
from tenants.storage.mapping import columns_of, read, record_of, selected

MAX_TEXT_LENGTH = 300
MAX_REASON_LENGTH = 1_000
"""Characters. An approach is named in a sentence; a longer text would cover every question."""
MAX_REJECTED = 1_000
"""Approaches that operators add."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected approach.

    :param text: the approach in the words in which it would be proposed.
    :param reason: the reason; customers may read it.
    :param day: ISO 8601 day of the decision.
    :param doc_id: the document it belongs to.
    :param declared: whether the document declares it or an operator added it.
    """

    text: str
    reason: str = ""
    day: str = ""
    doc_id: str | None = None
    declared: bool = False

    @property
    def rejected_id(self) -> str:
        """Return an id: the same words of the same document are the same approach."""
        return sha256(f"{self.doc_id or ''}\n{' '.join(self.text.casefold().split())}".encode()).hexdigest()[:12]

    def values(self) -> dict[str, object]:
        """Return the columns to store, with today's date if the approach has none."""
        day = self.day or datetime.now(UTC).date().isoformat()
        return columns_of(self) | {"rejected_id": self.rejected_id, "day": day}


def put(approach: Rejected) -> Rejected:
    """Add an operator's rejected approach, or replace the reason and day of the same one.

    Raises `NotFound` (`document_unknown`) if it belongs to a document that the tenant does not have, and `Invalid`
    (`rejected_too_many`, `relations_too_many`).
    """
    row = RejectedRow(**approach.values())
    row.declared = False
    with changing_relations() as session:
        if approach.doc_id is not None and session.find(DocumentRow, approach.doc_id) is None:
            raise NotFound("document_unknown", doc_id=approach.doc_id)
        check_room(session, RejectedRow, row.rejected_id)
        others = RejectedRow.declared.is_(False), RejectedRow.rejected_id != row.rejected_id
        session.check_room(RejectedRow, MAX_REJECTED, "rejected_too_many", *others)
        session.merge(row)
    return record_of(Rejected, row)


def remove(rejected_id: str) -> None:
    """Remove one. Raises `NotFound` (`rejected_unknown`). A declared one returns with its document's next change."""
    with changing_relations() as session:
        session.delete(session.existing(RejectedRow, rejected_id))


def all() -> tuple[Rejected, ...]:
    """Return all rejected approaches of the tenant, newest first."""
    return page(limit=None)


def page(*, limit: int | None = MAX_LISTED, offset: int = 0) -> tuple[Rejected, ...]:
    """Return rejected approaches of the tenant, newest first."""
    order = RejectedRow.day.desc(), RejectedRow.rejected_id
    return read(Rejected, selected(Rejected, RejectedRow).order_by(*order).limit(limit).offset(offset))

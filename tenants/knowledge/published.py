"""Documents that every visitor of a tenant's sites may read: those in force."""

from dataclasses import dataclass

from sqlalchemy import select

from tenants.knowledge import documents, relations
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.tables import DocumentRow
from tenants.storage import database

STATUS = "active"


@dataclass(frozen=True, slots=True)
class Listed:
    """A published document as a list shows it."""

    doc_id: str
    title: str
    source: str
    tags: tuple[str, ...]


def list_documents() -> tuple[Listed, ...]:
    """Return the published documents of the tenant, sorted by id."""
    superseded = relations.current().successors
    query = (
        select(DocumentRow.doc_id, DocumentRow.title, DocumentRow.source, DocumentRow.tags)
        .where(DocumentRow.status == STATUS)
        .order_by(DocumentRow.doc_id)
    )
    with database.reading() as session:
        rows = session.execute(query)
        return tuple(
            Listed(doc_id, title, source, tuple(tags))
            for doc_id, title, source, tags in rows
            if doc_id not in superseded
        )


def get(doc_id: str) -> DocumentRecord | None:
    """Return a published document; None for an unknown or hidden one."""
    record = documents.get(doc_id)
    return record if record is not None and is_published(record.doc_id, record.status) else None


def is_published(doc_id: str, status: str) -> bool:
    """Whether a document of this status is published: not archived, deprecated or superseded."""
    return status == STATUS and doc_id not in relations.current().successors

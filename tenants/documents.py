"""Which documents a tenant has, and which chunks each one became.

A record is written after the document's chunks are stored and before the chunks of its last version are removed, so a
record never names a chunk that is missing; what a crash leaves over is a chunk that no record names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from tenants import context, database
from tenants.models import DocumentRow

_PARAMETERS = 500
"""Values in one statement: databases bound them."""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One ingested document.

    :param content_hash: of all that its chunks are made from; equal means that ingesting it again changes nothing.
    :param chunk_ids: point ids in reading order.
    :param updated_at: ISO 8601 day of the document's own last change.
    """

    doc_id: str
    title: str
    source: str
    content_hash: str
    chunk_ids: tuple[str, ...]
    updated_at: str
    status: str = "active"
    url: str | None = None
    lang: str = "ru"


def get(doc_id: str) -> DocumentRecord | None:
    """The document, None when the tenant has no such one."""
    with database.reading() as session:
        row = session.get(DocumentRow, (context.current().tenant_id, doc_id))
        return _record(row) if row else None


def find(doc_ids: Sequence[str]) -> Mapping[str, DocumentRecord]:
    """Those of `doc_ids` that the tenant has, by id. A batch costs little more than one."""
    tenant_id = context.current().tenant_id
    found: dict[str, DocumentRecord] = {}
    with database.reading() as session:
        for start in range(0, len(doc_ids), _PARAMETERS):
            chosen = DocumentRow.doc_id.in_(doc_ids[start : start + _PARAMETERS])
            for row in session.scalars(select(DocumentRow).where(DocumentRow.tenant_id == tenant_id, chosen)):
                found[row.doc_id] = _record(row)
    return found


def all() -> tuple[DocumentRecord, ...]:
    """All documents of the tenant by id."""
    query = select(DocumentRow).where(DocumentRow.tenant_id == context.current().tenant_id)
    with database.reading() as session:
        return tuple(_record(row) for row in session.scalars(query.order_by(DocumentRow.doc_id)))


def put(*records: DocumentRecord) -> None:
    """Add or replace documents, all in one transaction."""
    with database.writing() as session:
        _delete(session, tuple(record.doc_id for record in records))
        session.add_all([_row(record) for record in records])


def remove(*doc_ids: str) -> None:
    """Forget documents, all in one transaction; unknown ids are ignored. Their chunks are the caller's to delete."""
    with database.writing() as session:
        _delete(session, doc_ids)


def _delete(session: Session, doc_ids: tuple[str, ...]) -> None:
    tenant_id = context.current().tenant_id
    for start in range(0, len(doc_ids), _PARAMETERS):
        chosen = DocumentRow.doc_id.in_(doc_ids[start : start + _PARAMETERS])
        session.execute(delete(DocumentRow).where(DocumentRow.tenant_id == tenant_id, chosen))


def _row(record: DocumentRecord) -> DocumentRow:
    return DocumentRow(
        tenant_id=context.current().tenant_id,
        doc_id=record.doc_id,
        title=record.title,
        source=record.source,
        url=record.url,
        lang=record.lang,
        content_hash=record.content_hash,
        chunk_ids=list(record.chunk_ids),
        updated_at=record.updated_at,
        status=record.status,
        ingested_at=datetime.now(UTC),
    )


def _record(row: DocumentRow) -> DocumentRecord:
    return DocumentRecord(
        doc_id=row.doc_id,
        title=row.title,
        source=row.source,
        content_hash=row.content_hash,
        chunk_ids=tuple(row.chunk_ids),
        updated_at=row.updated_at,
        status=row.status,
        url=row.url,
        lang=row.lang,
    )

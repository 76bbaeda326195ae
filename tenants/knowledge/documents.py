"""Records of a tenant's documents and their chunks.

A record is written after the document's chunks are stored and before the chunks of its last version are removed, so a
record never names a missing chunk; after a crash there may be chunks that no record names.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import select

from tenants.accounts import registry
from tenants.core import context
from tenants.core.batches import batches
from tenants.core.json import Json
from tenants.knowledge import relations, trial_document, versions
from tenants.knowledge.tables import DocumentRow, DocumentVersionRow, DocumentVoteRow
from tenants.knowledge.versions import DocumentVersion
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of, records
from tenants.storage.tables import TenantRow


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """An ingested document.

    :param content_hash: covers all inputs of its chunks; if it is equal, ingesting again changes nothing.
    :param chunk_ids: point ids in reading order.
    :param updated_at: ISO 8601 day of the last change in the source.
    :param flags: properties of the text that an operator should check.
    :param version: the number of the current version in `tenants.knowledge.versions`.
    :param given: the source's values of properties that an operator may override.
    :param overrides: the operator's values. They replace the source's values here and in the chunks.
    :param ingested_at: when the current version was written.
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
    trust: str = "auto"
    priority: int = 0
    tags: tuple[str, ...] = ()
    project_key: str = ""
    evidence_tier: str = ""
    source_type: str = ""
    flags: tuple[str, ...] = ()
    version: int = 1
    given: Mapping[str, Json] = field(default_factory=dict)
    overrides: Mapping[str, Json] = field(default_factory=dict)
    ingested_at: datetime | None = field(default=None, compare=False)

    @property
    def chunk_count(self) -> int:
        """Return the number of its chunks."""
        return len(self.chunk_ids)


def get(doc_id: str) -> DocumentRecord | None:
    """Return the document; None if the tenant has none with this id."""
    document = trial_document.current(context.current().tenant_id)
    if document is not None and document.record.doc_id == doc_id:
        return document.record
    with database.reading() as session:
        row = session.find(DocumentRow, doc_id)
        return record_of(DocumentRecord, row) if row else None


def find(doc_ids: Sequence[str]) -> Mapping[str, DocumentRecord]:
    """Return the tenant's documents among `doc_ids`, by id. A batch costs little more than a single document."""
    tenant_id = context.current().tenant_id
    records: dict[str, DocumentRecord] = {}
    with database.reading() as session:
        for batch in batches(doc_ids):
            for row in session.scalars(select(DocumentRow).where(DocumentRow.doc_id.in_(batch))):
                records[row.doc_id] = record_of(DocumentRecord, row)
    document = trial_document.current(tenant_id)
    if document is not None and document.record.doc_id in doc_ids:
        records[document.record.doc_id] = document.record
    return records


def named(names: Collection[str]) -> set[str]:
    """Return those of the names that are the id or the title of a document."""
    known: set[str] = set()
    with database.reading() as session:
        for batch in batches(names):
            for column in (DocumentRow.doc_id, DocumentRow.title):
                known.update(session.scalars(select(column).where(column.in_(batch))))
    return known


def doc_ids_by_content_hash(hashes: Sequence[str]) -> Mapping[str, str]:
    """Return the ids of the tenant's documents with these content hashes, by hash."""
    digests: dict[str, str] = {}
    with database.reading() as session:
        for batch in batches(hashes):
            query = select(DocumentRow.content_hash, DocumentRow.doc_id).where(DocumentRow.content_hash.in_(batch))
            digests.update((digest, doc_id) for digest, doc_id in session.execute(query))
    return digests


def all() -> tuple[DocumentRecord, ...]:
    """Return all documents of the tenant by id."""
    return records(DocumentRecord, select(DocumentRow).order_by(DocumentRow.doc_id))


def put(*records: DocumentRecord, new_versions: Sequence[DocumentVersion] = ()) -> None:
    """Add or replace documents, all in one transaction.

    :param new_versions: source texts to store. Only the newest ones of each document are kept.
    """
    with database.writing() as session:
        for batch in batches(record.doc_id for record in records):
            session.remove(DocumentRow, DocumentRow.doc_id.in_(batch))
        newest = session.scalar(select(TenantRow.newest_generation))
        session.add_all([_row(record, newest) for record in records])
        versions.keep(session, new_versions)
        registry.count_document_change(session)
    registry.expire()


def remove(*doc_ids: str) -> None:
    """Delete documents, their versions, votes and relations, in one transaction; unknown ids are ignored.

    Their chunks are the caller's to delete.
    """
    with database.writing() as session:
        for batch in batches(doc_ids):
            for row in (DocumentRow, DocumentVersionRow, DocumentVoteRow):
                session.remove(row, row.doc_id.in_(batch))
        relations.forget(session, doc_ids)
        registry.count_document_change(session)
    registry.expire()


def _row(record: DocumentRecord, generation: int | None) -> DocumentRow:
    values = columns_of(record) | {"ingested_at": record.ingested_at or datetime.now(UTC)}
    return DocumentRow(**values, generation=generation)

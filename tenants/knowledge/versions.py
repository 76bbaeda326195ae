"""Source texts of documents: the newest versions of each, for a rollback and for building an index."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import defer

from tenants.core.batches import batches
from tenants.core.json import Json
from tenants.knowledge.tables import DocumentRow, DocumentVersionRow
from tenants.storage import database
from tenants.storage.mapping import columns_of, record_of
from tenants.storage.tenant_session import TenantSession

MAX_VERSIONS = 10
"""Versions of one document. An older one goes when the next one comes."""

_BATCH = 64


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A document as received from its source.

    :param version: counted from 1 for each document.
    :param title: the title given by the source, or a substitute.
    :param markup: the format of `text`, as the ingest pipeline names it.
    :param meta: the document's metadata, validated.
    :param content_hash: covers all of the above except the version. Equal means the same document.
    """

    doc_id: str
    version: int
    title: str
    text: str
    source: str
    url: str | None
    lang: str
    markup: str
    content_hash: str
    meta: Mapping[str, Json] = field(default_factory=dict)
    created_at: datetime | None = field(default=None, compare=False)


def get(doc_id: str, version: int) -> DocumentVersion | None:
    """Return one version of a document of the tenant; None if it is not stored."""
    with database.reading() as session:
        row = session.find(DocumentVersionRow, doc_id, version)
        return _version(row) if row else None


def history(doc_id: str) -> tuple[DocumentVersion, ...]:
    """Return the stored versions of a document, newest first, without their texts."""
    query = select(DocumentVersionRow).where(DocumentVersionRow.doc_id == doc_id)
    with database.reading() as session:
        rows = session.scalars(
            query.options(defer(DocumentVersionRow.text)).order_by(DocumentVersionRow.version.desc())
        )
        return tuple(_version(row, with_text=False) for row in rows)


def hashes(doc_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the `content_hash` of the current version of each of these documents."""
    digests: dict[str, str] = {}
    query = _in_force().with_only_columns(DocumentVersionRow.doc_id, DocumentVersionRow.content_hash)
    with database.reading() as session:
        for batch in batches(doc_ids):
            chosen = DocumentVersionRow.doc_id.in_(batch)
            digests.update((doc_id, digest) for doc_id, digest in session.execute(query.where(chosen)))
    return digests


def in_force(doc_ids: Sequence[str]) -> Iterator[DocumentVersion]:
    """Yield the current version of each of these documents, a few texts in memory at a time; skip unknown ids."""
    for start in range(0, len(doc_ids), _BATCH):
        chosen = DocumentVersionRow.doc_id.in_(doc_ids[start : start + _BATCH])
        with database.reading() as session:
            digests = [_version(row) for row in session.scalars(_in_force().where(chosen))]
        yield from digests


def keep(session: TenantSession, new: Sequence[DocumentVersion]) -> None:
    """Add versions inside the caller's transaction, and delete those beyond `MAX_VERSIONS`."""
    session.add_all([_row(version) for version in new])
    for version in new:
        if version.version > MAX_VERSIONS:
            session.remove(
                DocumentVersionRow,
                DocumentVersionRow.doc_id == version.doc_id,
                DocumentVersionRow.version <= version.version - MAX_VERSIONS,
            )


def _in_force() -> Select[DocumentVersionRow]:
    return select(DocumentVersionRow).join(
        DocumentRow,
        (DocumentRow.doc_id == DocumentVersionRow.doc_id) & (DocumentRow.version == DocumentVersionRow.version),
    )


def _row(version: DocumentVersion) -> DocumentVersionRow:
    values = columns_of(version) | {"text": zlib.compress(version.text.encode())}
    return DocumentVersionRow(**values | {"created_at": version.created_at or datetime.now(UTC)})


def _version(row: DocumentVersionRow, *, with_text: bool = True) -> DocumentVersion:
    text = zlib.decompress(row.text).decode() if with_text else ""
    return record_of(DocumentVersion, row, text=text)

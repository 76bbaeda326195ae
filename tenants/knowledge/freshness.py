"""Documents that answers have lately been standing on, and that should be looked at again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from sqlalchemy import select

from tenants.knowledge import documents, relations
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.tools import ORIGIN
from tenants.storage import database
from tenants.storage.audit_tables import AuditDocumentRow, AuditRow

Doubt: TypeAlias = Literal["old", "changed", "removed", "superseded", "deprecated", "archived"]

_OUTDATED: Mapping[str, Doubt] = {"superseded": "superseded", "deprecated": "deprecated", "archived": "archived"}


@dataclass(frozen=True, slots=True)
class Stale:
    """A cited document that may no longer hold.

    :param doubts: `old`: last updated before the given limit; `changed`: a cited passage is no longer in it;
        `removed`: it was deleted; otherwise its status.
    """

    doc_id: str
    title: str
    updated_at: str
    citations: int
    last_cited_at: datetime
    doubts: tuple[Doubt, ...]


@dataclass(slots=True)
class _Cited:
    times: int
    last: datetime
    chunk_ids: set[str]


def stale(
    *, cited_within: timedelta = timedelta(days=30), older_than: timedelta = timedelta(days=365)
) -> tuple[Stale, ...]:
    """Return the tenant's stale documents, most cited first.

    :param cited_within: how far back citations count.
    :param older_than: age of a document's last update from which it is in doubt.
    """
    now = datetime.now(UTC)
    cited = _cited(now - cited_within)
    records = documents.find(list(cited))
    oldest = (now - older_than).date().isoformat()
    usage = [
        Stale(
            doc_id=doc_id,
            title=records[doc_id].title if doc_id in records else "",
            updated_at=records[doc_id].updated_at if doc_id in records else "",
            citations=usage_of.times,
            last_cited_at=usage_of.last,
            doubts=tuple(_doubts(usage_of, records.get(doc_id), oldest)),
        )
        for doc_id, usage_of in cited.items()
    ]
    return tuple(
        sorted(
            (document for document in usage if document.doubts),
            key=lambda document: (-document.citations, document.doc_id),
        )
    )


def _doubts(cited: _Cited, document: DocumentRecord | None, oldest: str) -> Iterator[Doubt]:
    if document is None:
        yield "removed"
        return
    if document.status in _OUTDATED:
        yield _OUTDATED[document.status]
    elif document.doc_id in relations.current().successors:
        yield "superseded"
    if not cited.chunk_ids <= set(document.chunk_ids):
        yield "changed"
    if document.updated_at and document.updated_at < oldest:
        yield "old"


def _cited(since: datetime) -> dict[str, _Cited]:
    beside = AuditRow.sequence == AuditDocumentRow.sequence
    query = (
        select(AuditDocumentRow.doc_id, AuditDocumentRow.chunk_ids, AuditRow.at)
        .join(AuditRow, beside)
        .where(
            AuditDocumentRow.cited.is_(True),
            # The answer of a tool is always current.
            AuditDocumentRow.doc_id.not_like(f"{ORIGIN}%"),
            AuditRow.at >= since,
        )
    )
    citations: dict[str, _Cited] = {}
    with database.reading() as session:
        for doc_id, chunk_ids, at in session.execute(query):
            document = citations.setdefault(doc_id, _Cited(0, at, set()))
            document.times += 1
            document.last = max(document.last, at)
            document.chunk_ids.update(chunk_ids)
    return citations

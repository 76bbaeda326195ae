"""Database tables of the knowledge base: documents, their relations and votes, tools, generations, gaps."""

from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.sealed import SealedJson
from tenants.storage.tables import KEY, TENANT_ID, Base, JsonObject, TenantKeyed


class DocumentRow(TenantKeyed, Base):
    """An ingested document. Written last, so all of its chunks are stored."""

    __tablename__ = "documents"
    __table_args__ = (Index("ix_documents_tenant_hash", "tenant_id", "content_hash"),)

    doc_id: Mapped[str] = mapped_column(KEY, primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    url: Mapped[str | None] = mapped_column(Text)
    lang: Mapped[str] = mapped_column(String(8))
    content_hash: Mapped[str] = mapped_column(String(128))
    chunk_ids: Mapped[list[str]] = mapped_column(JSON)
    updated_at: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(32))
    trust: Mapped[str] = mapped_column(String(32))
    priority: Mapped[int]
    tags: Mapped[list[str]] = mapped_column(JSON)
    project_key: Mapped[str] = mapped_column(Text)
    evidence_tier: Mapped[str] = mapped_column(Text)
    source_type: Mapped[str] = mapped_column(Text)
    flags: Mapped[list[str]] = mapped_column(JSON)
    version: Mapped[int]
    given: Mapped[JsonObject] = mapped_column(JSON)
    overrides: Mapped[JsonObject] = mapped_column(JSON)
    generation: Mapped[int]
    ingested_at: Mapped[datetime]


class DocumentVersionRow(TenantKeyed, Base):
    """A version of a document as received, its text compressed. Only the newest ones are kept."""

    __tablename__ = "document_versions"

    doc_id: Mapped[str] = mapped_column(KEY, primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    title: Mapped[str] = mapped_column(Text)
    text: Mapped[bytes] = mapped_column(LargeBinary)
    source: Mapped[str] = mapped_column(Text)
    url: Mapped[str | None] = mapped_column(Text)
    lang: Mapped[str] = mapped_column(String(8))
    markup: Mapped[str] = mapped_column(String(32))
    meta: Mapped[JsonObject] = mapped_column(JSON)
    content_hash: Mapped[str] = mapped_column(String(128))
    created_at: Mapped[datetime]


class EdgeRow(TenantKeyed, Base):
    """An edge between two documents. If a document declares it, the other document need not exist yet."""

    __tablename__ = "edges"
    unknown = "edge_unknown"
    __table_args__ = (Index("ix_edges_tenant_to", "tenant_id", "to_doc"),)

    from_doc: Mapped[str] = mapped_column(KEY, primary_key=True)
    kind: Mapped[str] = mapped_column(String(32), primary_key=True)
    to_doc: Mapped[str] = mapped_column(KEY, primary_key=True)
    weight: Mapped[float]
    declared: Mapped[bool]


class RejectedRow(TenantKeyed, Base):
    """A way of doing things that the tenant has dismissed."""

    __tablename__ = "rejected"
    unknown = "rejected_unknown"
    __table_args__ = (Index("ix_rejected_tenant_doc", "tenant_id", "doc_id"),)

    rejected_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    text: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    day: Mapped[str] = mapped_column(String(10))
    doc_id: Mapped[str | None] = mapped_column(KEY)
    declared: Mapped[bool]


class AgreementRow(TenantKeyed, Base):
    """Two passages that were marked as consistent, the smaller id first."""

    __tablename__ = "agreements"
    unknown = "pair_unknown"

    chunk_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    other_chunk_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    doc_id: Mapped[str] = mapped_column(KEY)
    other_doc_id: Mapped[str] = mapped_column(KEY)
    decided_by: Mapped[str] = mapped_column(TENANT_ID)
    at: Mapped[datetime]


class ContradictionRow(TenantKeyed, Base):
    """Two sentences of two documents that contradict each other, the smaller chunk id first."""

    __tablename__ = "contradictions"

    chunk_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    other_chunk_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    doc_id: Mapped[str] = mapped_column(KEY)
    other_doc_id: Mapped[str] = mapped_column(KEY)
    kind: Mapped[str] = mapped_column(String(16))
    start: Mapped[int]
    end: Mapped[int]
    other_start: Mapped[int]
    other_end: Mapped[int]
    at: Mapped[datetime]


class DocumentVoteRow(TenantKeyed, Base):
    """Votes of readers on a version of a document."""

    __tablename__ = "document_votes"

    doc_id: Mapped[str] = mapped_column(KEY, primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    helpful: Mapped[int]
    unhelpful: Mapped[int]


class ToolRow(TenantKeyed, Base):
    """An HTTP tool of a tenant's assistant. `headers` are secret."""

    __tablename__ = "tools"
    unknown = "tool_unknown"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    definition: Mapped[JsonObject] = mapped_column(JSON)
    headers: Mapped[dict[str, str]] = mapped_column(SealedJson)


class GenerationRow(TenantKeyed, Base):
    """A generation of a tenant's collection: all of its chunks, encoded in one way. `retired_at`: when it was replaced.

    `dimensions` is the size of its dense vectors, 0 without them. `shared` is the collection on the Qdrant server that
    holds it together with those of other tenants; empty for a dedicated one.
    """

    __tablename__ = "generations"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[str] = mapped_column(String(16))
    encoder: Mapped[str] = mapped_column(Text)
    dimensions: Mapped[int]
    shared: Mapped[str] = mapped_column(String(64), server_default="")
    created_at: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC))
    retired_at: Mapped[datetime | None]


class LexiconPartRow(TenantKeyed, Base):
    """A piece of a generation's document frequencies: a whole one, or the difference that one ingest batch made.

    Revisions count up over all generations of a tenant.
    """

    __tablename__ = "lexicon_parts"

    revision: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    generation: Mapped[int]
    whole: Mapped[bool]
    body: Mapped[bytes] = mapped_column(LargeBinary)


class GapRow(TenantKeyed, Base):
    """A question that the knowledge base could not answer, with all its askings.

    `article_id` is the article written for it. `vector` is the embedding of the question, `vector_of` a digest of its
    words and the embedding model.
    """

    __tablename__ = "gaps"
    unknown = "gap_unknown"
    __table_args__ = (
        Index("ix_gaps_tenant_status", "tenant_id", "status"),
        Index("ix_gaps_article", "tenant_id", "article_id"),
    )

    gap_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    reason: Mapped[str] = mapped_column(String(64))
    question: Mapped[str] = mapped_column(Text)
    stems: Mapped[list[str]] = mapped_column(JSON)
    doc_ids: Mapped[list[str]] = mapped_column(JSON)
    count: Mapped[int]
    reopened: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    decided_by: Mapped[str] = mapped_column(TENANT_ID, default="")
    article_id: Mapped[str | None] = mapped_column(String(32))
    vector: Mapped[bytes | None] = mapped_column(LargeBinary)
    vector_of: Mapped[str] = mapped_column(String(32), default="")


class GapAskingRow(TenantKeyed, Base):
    """A turn that asked for a gap, with its wording."""

    __tablename__ = "gap_askings"
    __table_args__ = (Index("ix_gap_askings_sequence", "tenant_id", "sequence"),)

    gap_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    question: Mapped[str] = mapped_column(Text, server_default="")


class WatchedFileRow(TenantKeyed, Base):
    """A file of a tenant's watched folder as last ingested, with the documents in it."""

    __tablename__ = "watched_files"

    path: Mapped[str] = mapped_column(KEY, primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    modified_ns: Mapped[int] = mapped_column(BigInteger)
    doc_ids: Mapped[list[str]] = mapped_column(JSON)

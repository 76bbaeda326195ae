"""Database tables of the records, the same on SQLite and PostgreSQL. Every key starts with the tenant."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from sqlalchemy import (
    JSON,
    BigInteger,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy import DateTime as SqlDateTime
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine

from tenants.core.errors import NotFound
from tenants.storage.sealed import SealedJson, SealedText

if TYPE_CHECKING:
    from tenants.core.json import Json

    JsonObject: TypeAlias = dict[str, Json]
else:  # SQLAlchemy reads annotations at run time, and cannot follow a type that holds itself.
    JsonObject = dict

TENANT_ID = String(255)
KEY = String(512)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment in UTC. SQLite keeps no offset, so it is cut off on the way in and put back on the way out."""

    impl = SqlDateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Base of all tables; maps Python types to column types.

    :cvar unknown: the code of `NotFound` for a row that does not exist.
    """

    unknown: ClassVar[str] = NotFound.code

    type_annotation_map: ClassVar[dict[type, TypeEngine[datetime] | type[TypeDecorator[datetime]]]] = {
        datetime: UtcDateTime
    }


class TenantOwned:
    """Mixin of tables whose rows belong to a tenant. Sessions restrict every query to theirs."""

    tenant_id: Mapped[str] = mapped_column(TENANT_ID)


class TenantKeyed(TenantOwned):
    """Mixin of tables whose key starts with the tenant."""

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey("tenants.tenant_id"), primary_key=True, sort_order=-1)


class TenantRow(TenantOwned, Base):
    """A customer of the installation: its policy and the location of its chunks."""

    __tablename__ = "tenants"
    unknown = "tenant_unknown"

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    locale: Mapped[str] = mapped_column(String(8))
    policy: Mapped[dict[str, object]] = mapped_column(JSON)
    collection: Mapped[str] = mapped_column(String(190), unique=True)
    generation: Mapped[int]
    newest_generation: Mapped[int]
    relations: Mapped[int] = mapped_column(default=0)
    document_changes: Mapped[int] = mapped_column(default=0, server_default="0")
    created_at: Mapped[datetime]
    suspended_at: Mapped[datetime | None]


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


class LexiconStateRow(TenantKeyed, Base):
    """The newest revision of a tenant's lexicon and whether an ingest run is, or was left, in the middle of it."""

    __tablename__ = "lexicon_states"

    revision: Mapped[int]
    dirty: Mapped[bool]


class TicketRow(TenantKeyed, Base):
    """A question handed over to a person. `chat_id` is empty for a turn that belongs to no chat."""

    __tablename__ = "tickets"
    __table_args__ = (
        Index("ix_tickets_tenant_created", "tenant_id", "created_at"),
        Index("ix_tickets_created", "created_at"),
        Index("ix_tickets_tenant_chat", "tenant_id", "chat_id"),
    )

    ticket_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    turn_id: Mapped[str] = mapped_column(String(128))
    session_id: Mapped[str] = mapped_column(String(128))
    subject: Mapped[str] = mapped_column(TENANT_ID)
    channel: Mapped[str] = mapped_column(String(128))
    reason: Mapped[str] = mapped_column(String(64))
    question: Mapped[str] = mapped_column(SealedText)
    draft: Mapped[str] = mapped_column(SealedText)
    chat_id: Mapped[str] = mapped_column(String(32), default="")
    closed_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class ConversationRow(TenantKeyed, Base):
    """The turns of a person's conversation, oldest first."""

    __tablename__ = "conversations"
    __table_args__ = (Index("ix_conversations_updated", "updated_at"),)

    subject: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    session_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    turns: Mapped[list[dict[str, object]]] = mapped_column(JSON)
    updated_at: Mapped[datetime]


class IdempotencyRow(TenantKeyed, Base):
    """A request that carries an `Idempotency-Key`, and the answer it got; None while the process `holder` is at it."""

    __tablename__ = "idempotency"
    __table_args__ = (Index("ix_idempotency_created", "created_at"),)

    subject: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    key: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    answer: Mapped[str | None] = mapped_column(SealedText)
    holder: Mapped[str] = mapped_column(String(32), server_default="")
    created_at: Mapped[datetime]


class TokenRow(TenantKeyed, Base):
    """Metadata of an issued token; the token itself is not stored."""

    __tablename__ = "tokens"
    __table_args__ = (Index("ix_tokens_expires", "expires_at"),)

    token_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    subject: Mapped[str] = mapped_column(TENANT_ID)
    scopes: Mapped[list[str]] = mapped_column(JSON)
    issued_at: Mapped[datetime]
    issued_by: Mapped[str] = mapped_column(TENANT_ID)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class RevocationRow(TenantKeyed, Base):
    """Tokens that are refused though they are signed: those of `kind` and `value` that were issued until a moment.

    `kind` is `token` (its id; refused from that moment on), `subject`, or `tenant` (all of them, `value` is empty).
    """

    __tablename__ = "revocations"

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    value: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    until: Mapped[datetime]


class SpendingRow(TenantKeyed, Base):
    """A tenant's cost of language models on one day, and the bytes that were written to its chats."""

    __tablename__ = "spending"
    __table_args__ = (Index("ix_spending_day", "day"),)

    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    usd: Mapped[float] = mapped_column(default=0.0)
    chat_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class FeedbackRow(TenantKeyed, Base):
    """A verdict on the answer of a turn. `person` and `session_id` are as in the audit's content."""

    __tablename__ = "feedback"
    __table_args__ = (
        Index("ix_feedback_tenant_at", "tenant_id", "at"),
        Index("ix_feedback_person", "tenant_id", "person"),
    )

    turn_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    person: Mapped[str] = mapped_column(String(32), primary_key=True)
    session_id: Mapped[str] = mapped_column(String(128))
    thumb: Mapped[str] = mapped_column(String(8))
    reason: Mapped[str | None] = mapped_column(String(16))
    comment: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]


class ErasureRow(TenantKeyed, Base):
    """Owner of turns to forget, up to a moment, including turns that have not reached the audit yet."""

    __tablename__ = "erasures"

    person: Mapped[str] = mapped_column(String(32), primary_key=True)
    session_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    until: Mapped[datetime]


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


class JobRow(TenantKeyed, Base):
    """A job: files to ingest and documents to remove, with the result.

    `revision` increases with every visible change of the job, `attempts` with every start without progress beyond
    `farthest` documents, `faults` with every error that ended an attempt. `holder` is the process that started it last.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_state", "state", "tenant_id"),)

    job_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    subject: Mapped[str] = mapped_column(TENANT_ID)
    kind: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16), default="queued")
    files: Mapped[list[str]] = mapped_column(JSON)
    gone: Mapped[list[str]] = mapped_column(JSON)
    size: Mapped[int] = mapped_column(BigInteger)
    progress: Mapped[dict[str, object]] = mapped_column(JSON, default=dict)
    report: Mapped[dict[str, object] | None] = mapped_column(JSON)
    error: Mapped[str | None] = mapped_column(String(64))
    revision: Mapped[int] = mapped_column(default=1)
    attempts: Mapped[int] = mapped_column(default=0)
    farthest: Mapped[int] = mapped_column(default=0)
    faults: Mapped[int] = mapped_column(default=0)
    cancelling: Mapped[bool] = mapped_column(default=False)
    holder: Mapped[str] = mapped_column(String(32), default="", server_default="")
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    begun_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class WatchedFileRow(TenantKeyed, Base):
    """A file of a tenant's watched folder as last ingested, with the documents in it."""

    __tablename__ = "watched_files"

    path: Mapped[str] = mapped_column(KEY, primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    modified_ns: Mapped[int] = mapped_column(BigInteger)
    doc_ids: Mapped[list[str]] = mapped_column(JSON)

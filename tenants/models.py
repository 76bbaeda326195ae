"""The tables of the records, the same on SQLite and PostgreSQL. Every table is keyed by tenant first."""

from datetime import UTC, datetime
from typing import ClassVar

from sqlalchemy import JSON, Dialect, ForeignKey, Index, LargeBinary, String, Text, TypeDecorator
from sqlalchemy import DateTime as SqlDateTime
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine

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
    """Python types of columns and what the database makes of them."""

    type_annotation_map: ClassVar[dict[type, TypeEngine[datetime] | type[TypeDecorator[datetime]]]] = {
        datetime: UtcDateTime
    }


class TenantRow(Base):
    """One customer of the installation, its policy, and where its chunks are."""

    __tablename__ = "tenants"

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    locale: Mapped[str] = mapped_column(String(8))
    policy: Mapped[dict[str, object]] = mapped_column(JSON)
    collection: Mapped[str] = mapped_column(String(190), unique=True)
    generation: Mapped[int]
    shared_filter: Mapped[str | None] = mapped_column(TENANT_ID)
    shard_key: Mapped[str | None] = mapped_column(TENANT_ID)
    created_at: Mapped[datetime]


class DocumentRow(Base):
    """One ingested document. Written last, so a row says that all of its chunks are stored."""

    __tablename__ = "documents"

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id), primary_key=True)
    doc_id: Mapped[str] = mapped_column(KEY, primary_key=True)
    title: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    url: Mapped[str | None] = mapped_column(Text)
    lang: Mapped[str] = mapped_column(String(8))
    content_hash: Mapped[str] = mapped_column(String(128))
    chunk_ids: Mapped[list[str]] = mapped_column(JSON)
    updated_at: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(32))
    ingested_at: Mapped[datetime]


class LexiconPartRow(Base):
    """A piece of a tenant's document frequencies: a whole one, or the difference that one ingest batch made."""

    __tablename__ = "lexicon_parts"

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id), primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    whole: Mapped[bool]
    body: Mapped[bytes] = mapped_column(LargeBinary)


class LexiconStateRow(Base):
    """The newest revision of a tenant's lexicon and whether an ingest run is, or was left, in the middle of it."""

    __tablename__ = "lexicon_states"

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id), primary_key=True)
    revision: Mapped[int]
    dirty: Mapped[bool]


class TicketRow(Base):
    """A question handed over to a person."""

    __tablename__ = "tickets"
    __table_args__ = (Index("ix_tickets_tenant_created", "tenant_id", "created_at"),)

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id), primary_key=True)
    ticket_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    turn_id: Mapped[str] = mapped_column(String(128))
    subject: Mapped[str] = mapped_column(TENANT_ID)
    channel: Mapped[str] = mapped_column(String(128))
    reason: Mapped[str] = mapped_column(String(64))
    question: Mapped[str] = mapped_column(Text)
    draft: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class IdempotencyRow(Base):
    """A request that carries an `Idempotency-Key`, and the answer it got. `answer` is None while it is worked on."""

    __tablename__ = "idempotency"
    __table_args__ = (Index("ix_idempotency_created", "created_at"),)

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey(TenantRow.tenant_id), primary_key=True)
    subject: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    key: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    answer: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]

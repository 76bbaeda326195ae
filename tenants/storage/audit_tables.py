"""Database tables of the audit: its chain, the contents that can be erased, the documents of each turn, and erasures.

They are here because `tenants.knowledge` and `tenants.desk`, which the audit is above, read them too.
"""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.tables import KEY, Base, TenantKeyed


class AuditChainRow(TenantKeyed, Base):
    """The newest link of a tenant's audit chain; locked while links are added."""

    __tablename__ = "audit_chains"

    sequence: Mapped[int] = mapped_column(BigInteger)
    hash: Mapped[str] = mapped_column(String(64))


class AuditRow(TenantKeyed, Base):
    """A link of the audit chain. It holds no personal data: that is in the content, which can be erased."""

    __tablename__ = "audit"
    __table_args__ = (UniqueConstraint("tenant_id", "turn_id"), Index("ix_audit_tenant_at", "tenant_id", "at"))

    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    at: Mapped[datetime]
    turn_id: Mapped[str | None] = mapped_column(String(128))
    outcome: Mapped[str | None] = mapped_column(String(32))
    reason: Mapped[str | None] = mapped_column(String(64))
    note: Mapped[str | None] = mapped_column(Text)
    digest: Mapped[str | None] = mapped_column(String(64))
    previous: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64))


class AuditContentRow(TenantKeyed, Base):
    """The content covered by a link's `digest`. `text` is the searchable form."""

    __tablename__ = "audit_contents"
    __table_args__ = (
        Index("ix_audit_contents_person", "tenant_id", "person"),
        Index("ix_audit_contents_session", "tenant_id", "session_id"),
    )

    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    person: Mapped[str] = mapped_column(String(32))
    session_id: Mapped[str] = mapped_column(String(128))
    salt: Mapped[str] = mapped_column(String(32))
    body: Mapped[bytes] = mapped_column(LargeBinary)
    text: Mapped[str] = mapped_column(Text)


class AuditDocumentRow(TenantKeyed, Base):
    """A document that a turn found. `chunk_ids` are its passages that the answer cites."""

    __tablename__ = "audit_documents"
    __table_args__ = (Index("ix_audit_documents_sequence", "tenant_id", "sequence"),)

    doc_id: Mapped[str] = mapped_column(KEY, primary_key=True)
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    cited: Mapped[bool]
    chunk_ids: Mapped[list[str]] = mapped_column(JSON)


class ErasureRow(TenantKeyed, Base):
    """Owner of turns to forget, up to a moment, including turns that have not reached the audit yet."""

    __tablename__ = "erasures"

    person: Mapped[str] = mapped_column(String(32), primary_key=True)
    session_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    until: Mapped[datetime]


class SpooledRow(Base):
    """A record on its way to the audit, as a line of the spool. Ids sort by the time they were made."""

    __tablename__ = "audit_spool"

    spooled_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    line: Mapped[bytes] = mapped_column(LargeBinary)

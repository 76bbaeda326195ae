"""Database tables of access: issued tokens, revocations, and what a tenant spends a day."""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.tables import TENANT_ID, Base, TenantKeyed


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

"""Tenants, documents, lexicon, tickets, idempotency."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "tenants",
        sa.Column("tenant_id", sa.String(255), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("locale", sa.String(8), nullable=False),
        sa.Column("policy", sa.JSON, nullable=False),
        sa.Column("collection", sa.String(190), nullable=False, unique=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("shared_filter", sa.String(255)),
        sa.Column("shard_key", sa.String(255)),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "documents",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("doc_id", sa.String(512), primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("lang", sa.String(8), nullable=False),
        sa.Column("content_hash", sa.String(128), nullable=False),
        sa.Column("chunk_ids", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.String(32), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("ingested_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "lexicon_states",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("dirty", sa.Boolean, nullable=False),
    )
    op.create_table(
        "lexicon_parts",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("whole", sa.Boolean, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "tickets",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("ticket_id", sa.String(32), primary_key=True),
        sa.Column("turn_id", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("channel", sa.String(128), nullable=False),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("draft", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Index("ix_tickets_tenant_created", "tenant_id", "created_at"),
    )
    op.create_table(
        "idempotency",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Index("ix_idempotency_created", "created_at"),
    )

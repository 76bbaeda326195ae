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
        sa.Column("newest_generation", sa.Integer, nullable=False),
        sa.Column("shared_filter", sa.String(255)),
        sa.Column("shard_key", sa.String(255)),
        sa.Column("relations", sa.Integer, nullable=False),
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
        sa.Column("trust", sa.String(32), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("project_key", sa.Text, nullable=False),
        sa.Column("evidence_tier", sa.Text, nullable=False),
        sa.Column("source_type", sa.Text, nullable=False),
        sa.Column("flags", sa.JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("given", sa.JSON, nullable=False),
        sa.Column("overrides", sa.JSON, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("ingested_at", sa.DateTime, nullable=False),
        sa.Index("ix_documents_tenant_hash", "tenant_id", "content_hash"),
    )
    op.create_table(
        "document_versions",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("doc_id", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("lang", sa.String(8), nullable=False),
        sa.Column("markup", sa.String(32), nullable=False),
        sa.Column("meta", sa.JSON, nullable=False),
        sa.Column("content_hash", sa.String(128), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "edges",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("from_doc", sa.String(512), primary_key=True),
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("to_doc", sa.String(512), primary_key=True),
        sa.Column("weight", sa.Double, nullable=False),
        sa.Column("declared", sa.Boolean, nullable=False),
        sa.Index("ix_edges_tenant_to", "tenant_id", "to_doc"),
    )
    op.create_table(
        "rejected",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("rejected_id", sa.String(32), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("doc_id", sa.String(512)),
        sa.Column("declared", sa.Boolean, nullable=False),
        sa.Index("ix_rejected_tenant_doc", "tenant_id", "doc_id"),
    )
    op.create_table(
        "tools",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("definition", sa.JSON, nullable=False),
        sa.Column("headers", sa.JSON, nullable=False),
    )
    op.create_table(
        "lexicon_states",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("dirty", sa.Boolean, nullable=False),
    )
    op.create_table(
        "generations",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("encoder", sa.Text, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("retired_at", sa.DateTime),
    )
    op.create_table(
        "lexicon_parts",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("whole", sa.Boolean, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "tickets",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("ticket_id", sa.String(32), primary_key=True),
        sa.Column("turn_id", sa.String(128), nullable=False),
        sa.Column("session_id", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("channel", sa.String(128), nullable=False),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("draft", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Index("ix_tickets_tenant_created", "tenant_id", "created_at"),
    )
    op.create_table(
        "conversations",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("session_id", sa.String(128), primary_key=True),
        sa.Column("turns", sa.JSON, nullable=False),
        sa.Column("updated_at", sa.DateTime, nullable=False),
        sa.Index("ix_conversations_updated", "updated_at"),
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
    op.create_table(
        "audit_chains",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("turn_id", sa.String(128)),
        sa.Column("outcome", sa.String(32)),
        sa.Column("reason", sa.String(64)),
        sa.Column("note", sa.Text),
        sa.Column("digest", sa.String(64)),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.UniqueConstraint("tenant_id", "turn_id"),
        sa.Index("ix_audit_tenant_at", "tenant_id", "at"),
    )
    op.create_table(
        "audit_contents",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("person", sa.String(32), nullable=False),
        sa.Column("session_id", sa.String(128), nullable=False),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Index("ix_audit_contents_person", "tenant_id", "person"),
        sa.Index("ix_audit_contents_session", "tenant_id", "session_id"),
    )
    op.create_table(
        "audit_documents",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("doc_id", sa.String(512), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("cited", sa.Boolean, nullable=False),
        sa.Column("chunk_ids", sa.JSON, nullable=False),
        sa.Index("ix_audit_documents_sequence", "tenant_id", "sequence"),
    )
    op.create_table(
        "feedback",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("turn_id", sa.String(128), primary_key=True),
        sa.Column("person", sa.String(32), primary_key=True),
        sa.Column("session_id", sa.String(128), nullable=False),
        sa.Column("thumb", sa.String(8), nullable=False),
        sa.Column("reason", sa.String(16)),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Index("ix_feedback_tenant_at", "tenant_id", "at"),
        sa.Index("ix_feedback_person", "tenant_id", "person"),
    )
    op.create_table(
        "erasures",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("person", sa.String(32), primary_key=True),
        sa.Column("session_id", sa.String(128), primary_key=True),
        sa.Column("until", sa.DateTime, nullable=False),
    )
    op.create_table(
        "gaps",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("gap_id", sa.String(32), primary_key=True),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("stems", sa.JSON, nullable=False),
        sa.Column("doc_ids", sa.JSON, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("reopened", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("first_at", sa.DateTime, nullable=False),
        sa.Column("last_at", sa.DateTime, nullable=False),
        sa.Column("closed_at", sa.DateTime),
        sa.Index("ix_gaps_tenant_status", "tenant_id", "status"),
    )
    op.create_table(
        "gap_askings",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("gap_id", sa.String(32), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Index("ix_gap_askings_sequence", "tenant_id", "sequence"),
    )
    op.create_table(
        "spending",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("usd", sa.Double, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("job_id", sa.String(32), primary_key=True),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("files", sa.JSON, nullable=False),
        sa.Column("gone", sa.JSON, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("progress", sa.JSON, nullable=False),
        sa.Column("report", sa.JSON),
        sa.Column("error", sa.String(64)),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("farthest", sa.Integer, nullable=False),
        sa.Column("faults", sa.Integer, nullable=False),
        sa.Column("cancelling", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("started_at", sa.DateTime),
        sa.Column("begun_at", sa.DateTime),
        sa.Column("finished_at", sa.DateTime),
        sa.Index("ix_jobs_state", "state", "tenant_id"),
    )
    op.create_table(
        "watched_files",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("path", sa.String(512), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("modified_ns", sa.BigInteger, nullable=False),
        sa.Column("doc_ids", sa.JSON, nullable=False),
    )

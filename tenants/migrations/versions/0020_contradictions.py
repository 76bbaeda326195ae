"""Pairs of sentences that contradict each other, found when documents change."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create their table."""
    op.create_table(
        "contradictions",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("chunk_id", sa.String(64), primary_key=True),
        sa.Column("other_chunk_id", sa.String(64), primary_key=True),
        sa.Column("doc_id", sa.String(512), nullable=False),
        sa.Column("other_doc_id", sa.String(512), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
        sa.Column("other_start", sa.Integer, nullable=False),
        sa.Column("other_end", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
    )

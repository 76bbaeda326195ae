"""Add pairs of passages that were marked as consistent."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Create the table of agreements."""
    op.create_table(
        "agreements",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("chunk_id", sa.String(64), primary_key=True),
        sa.Column("other_chunk_id", sa.String(64), primary_key=True),
        sa.Column("doc_id", sa.String(512), nullable=False),
        sa.Column("other_doc_id", sa.String(512), nullable=False),
        sa.Column("decided_by", sa.String(255), nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
    )

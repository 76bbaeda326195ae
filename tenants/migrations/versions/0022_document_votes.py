"""Votes of readers on documents."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Create their table."""
    op.create_table(
        "document_votes",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("doc_id", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("helpful", sa.Integer, nullable=False),
        sa.Column("unhelpful", sa.Integer, nullable=False),
    )

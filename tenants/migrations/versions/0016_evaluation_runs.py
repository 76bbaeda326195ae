"""Add results of evaluation runs on a tenant's knowledge base."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "evaluation_runs",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("run_id", sa.String(100), primary_key=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
    )
    op.create_index("ix_evaluation_runs_created", "evaluation_runs", ["tenant_id", "created_at"])

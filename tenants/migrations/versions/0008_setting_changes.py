"""Add the history of setting changes."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the table of changes."""
    op.create_table(
        "setting_changes",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("change_id", sa.String(32), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("changed_by", sa.String(255), nullable=False),
        sa.Column("area", sa.String(16), nullable=False),
        sa.Column("act", sa.String(16), nullable=False),
        sa.Column("about", sa.String(255), nullable=False),
        sa.Column("before_json", sa.JSON, nullable=False),
        sa.Column("after_json", sa.JSON, nullable=False),
        sa.Index("ix_setting_changes_at", "tenant_id", "at"),
    )

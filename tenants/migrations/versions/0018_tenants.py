"""Add suspension of tenants, and links for their first admins."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the column, with no tenant suspended, and the table."""
    op.add_column("tenants", sa.Column("suspended_at", sa.DateTime))
    op.create_table(
        "invitations",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )

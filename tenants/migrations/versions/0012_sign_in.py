"""Identity providers of tenants."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create their table."""
    op.create_table(
        "sign_in_providers",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("issuer", sa.Text, nullable=False),
        sa.Column("client_id", sa.Text, nullable=False),
        sa.Column("client_secret", sa.Text, nullable=False),
        sa.Column("rules", sa.JSON, nullable=False),
    )

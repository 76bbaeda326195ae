"""Add the register of issued tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Create the table of tokens. Tokens issued before are not listed, and keep working."""
    op.create_table(
        "tokens",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("token_id", sa.String(32), primary_key=True),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("issued_at", sa.DateTime, nullable=False),
        sa.Column("issued_by", sa.String(255), nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
        sa.Column("used_at", sa.DateTime),
    )
    op.create_index("ix_tokens_expires", "tokens", ["expires_at"])

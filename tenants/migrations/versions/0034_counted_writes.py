"""Counts of what a tenant writes: changes of its documents, and bytes of its chats a day."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Add the columns, which begin at 0."""
    op.add_column("tenants", sa.Column("document_changes", sa.Integer, nullable=False, server_default="0"))
    op.add_column("spending", sa.Column("chat_bytes", sa.BigInteger, nullable=False, server_default="0"))

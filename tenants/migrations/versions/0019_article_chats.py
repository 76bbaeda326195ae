"""Add the chat that an article was written from."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column; existing articles have no chat."""
    op.add_column("articles", sa.Column("chat_id", sa.String(32)))
    op.create_index("ix_articles_chat", "articles", ["tenant_id", "chat_id"])

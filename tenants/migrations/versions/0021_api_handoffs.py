"""Chats that begin with a question from outside: its session, the customer's contact, and the encrypted question."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add their columns."""
    op.add_column("chats", sa.Column("session_id", sa.String(128)))
    op.add_column("chats", sa.Column("contact", sa.Text))
    op.add_column("chat_messages", sa.Column("original", sa.Text))

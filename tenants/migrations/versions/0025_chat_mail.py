"""E-mail of chats: the token that names a chat in a reference, and the last message that was e-mailed."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add their columns."""
    op.add_column("chats", sa.Column("mail_token", sa.String(32)))
    op.add_column("chats", sa.Column("mailed_seq", sa.Integer, nullable=False, server_default="0"))

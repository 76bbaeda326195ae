"""Files of chats: the message that each was sent with."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the message of a file, and indexes by chat and by age."""
    with op.batch_alter_table("chat_files") as files:
        files.add_column(sa.Column("message_id", sa.String(32)))
        files.create_index("ix_chat_files_chat", ["tenant_id", "chat_id"])
        files.create_index("ix_chat_files_created", ["tenant_id", "created_at"])

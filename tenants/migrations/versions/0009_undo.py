"""Store the state of a chat before an operator's last change, for undo."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; earlier changes cannot be undone."""
    op.add_column("chats", sa.Column("undo", sa.JSON(none_as_null=True), nullable=True))

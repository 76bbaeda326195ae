"""A chat keeps what it was before an operator's last change, so that the change can be taken back."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; earlier changes cannot be taken back."""
    op.add_column("chats", sa.Column("undo", sa.JSON(none_as_null=True), nullable=True))

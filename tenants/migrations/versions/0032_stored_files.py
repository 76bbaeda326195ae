"""Files of chats in the store of files, outside of the database."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Add their keys. `opora migrate` and the nightly check move the contents, which are readable until then."""
    op.add_column("chat_files", sa.Column("secret", sa.Text))

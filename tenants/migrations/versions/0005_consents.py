"""Add the withdrawal of consents."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the end of a consent."""
    with op.batch_alter_table("consents") as consents:
        consents.add_column(sa.Column("withdrawn_at", sa.DateTime))

"""Tables of procrastinate, which carries background work on PostgreSQL, and leases of processes."""

import sqlalchemy as sa
from alembic import op
from procrastinate.schema import SchemaManager

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Apply the schema of the pinned version. A newer version of procrastinate needs a migration with its changes."""
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("holder", sa.String(32), nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("wanted", sa.Boolean, nullable=False),
    )
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # Without parameters: the script has many statements, and per cent signs.
        connection.connection.cursor().execute(SchemaManager.get_schema())

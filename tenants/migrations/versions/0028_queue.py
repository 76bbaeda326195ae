"""Tables of procrastinate, which carries background work on PostgreSQL."""

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Apply the schema of the pinned version. A newer version of procrastinate needs a migration with its changes."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # Without parameters: the script has many statements, and per cent signs.
        connection.connection.cursor().execute(SchemaManager.get_schema())

"""Generations in collections that tenants share."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Add the name of the shared collection, in place of two columns that were never used."""
    op.add_column("generations", sa.Column("shared", sa.String(64), nullable=False, server_default=""))
    op.drop_column("tenants", "shared_filter")
    op.drop_column("tenants", "shard_key")

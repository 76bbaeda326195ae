"""Restrict every table of tenants to the tenant of the transaction, on PostgreSQL."""

from alembic import op
from sqlalchemy import inspect

from tenants.migrations.row_security import protect

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add the policies. Replicas of older versions do not name their tenant, and find no rows from here on."""
    schema = inspect(op.get_bind())
    for table in schema.get_table_names():
        if any(column["name"] == "tenant_id" for column in schema.get_columns(table)):
            protect(table)

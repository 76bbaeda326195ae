"""Alembic's entry point. The connection and its lock belong to `tenants.storage.database`."""

from alembic import context
from sqlalchemy import Connection

from tenants.all_tables import Base

connection: Connection = context.config.attributes["connection"]
in_use: bool = context.config.attributes["in_use"]
# Batch mode rewrites a table where SQLite cannot alter it.
context.configure(
    connection=connection, target_metadata=Base.metadata, render_as_batch=True, transaction_per_migration=in_use
)
# Has no effect in a transaction that is open already.
with context.begin_transaction():
    context.run_migrations()

"""Alembic's entry point. The connection, its lock and its transaction belong to `tenants.storage.database`."""

from alembic import context
from sqlalchemy import Connection

from tenants.tables import Base

connection: Connection = context.config.attributes["connection"]
# Batch mode rewrites a table where SQLite cannot alter it.
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
context.run_migrations()

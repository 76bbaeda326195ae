"""Create the tables of version 0.1.0."""

import logging

import sqlalchemy as sa
from alembic import op

from tenants.migrations.baseline.people import TABLES
from tenants.migrations.indexes import Indexing, indexing

revision = "0019"
down_revision = None

log = logging.getLogger("opora.database")


def upgrade() -> None:
    """Create them, and two indexes that only PostgreSQL has."""
    TABLES.create_all(op.get_bind())
    if op.get_bind().dialect.name == "postgresql":
        with indexing() as indexes:
            _create(indexes)


def _create(indexes: Indexing) -> None:
    """Index documents in character order, and substrings of the audit's texts if the extension `pg_trgm` exists."""
    indexes.create("ix_pg_documents_characters", "documents", ["tenant_id", sa.text('doc_id COLLATE "C"')])
    if not indexes.attempt("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public"):
        log.warning("without the extension pg_trgm, texts in the audit are searched slowly")
        return
    # The extension may exist in a schema that is not on the search path of this connection.
    place = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm'"
    operators = {"text": f"{op.get_bind().scalar(sa.text(place))}.gin_trgm_ops"}
    indexes.create(
        "ix_pg_audit_contents_text", "audit_contents", ["text"], postgresql_using="gin", postgresql_ops=operators
    )

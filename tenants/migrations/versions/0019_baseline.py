"""Create the tables of version 0.1.0."""

import logging
import re
from pathlib import Path

import sqlalchemy as sa
from alembic import op

from tenants.migrations.indexes import Indexing, indexing

revision = "0019"
down_revision = None

_TYPES = {"BLOB": "BYTEA", "DATETIME": "TIMESTAMP", "DOUBLE": "DOUBLE PRECISION"}
"""Types of PostgreSQL by those of SQLite."""

log = logging.getLogger("opora.database")


def upgrade() -> None:
    """Create them, and two indexes that only PostgreSQL has."""
    script = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    is_server = op.get_bind().dialect.name == "postgresql"
    if is_server:
        script = re.sub("|".join(_TYPES), lambda found: _TYPES[found[0]], script)
    for statement in script.split(";\n")[:-1]:
        op.get_bind().exec_driver_sql(statement)
    if is_server:
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

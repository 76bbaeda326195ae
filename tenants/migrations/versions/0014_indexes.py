"""Add indexes for PostgreSQL only: substrings of the audit's texts, and pages of documents in character order."""

import logging

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import DBAPIError

revision = "0014"
down_revision = "0013"

log = logging.getLogger("opora.database")


def upgrade() -> None:
    """Make them; without the extension `pg_trgm` a search in the audit reads the texts."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    op.create_index("ix_pg_documents_characters", "documents", ["tenant_id", sa.text('doc_id COLLATE "C"')])
    try:
        with connection.begin_nested():
            op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public")
    except DBAPIError:
        log.warning("without the extension pg_trgm, texts in the audit are searched slowly")
        return
    # The extension may exist in a schema that is not on the search path of this connection.
    place = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm'"
    operators = {"text": f"{connection.scalar(sa.text(place))}.gin_trgm_ops"}
    op.create_index(
        "ix_pg_audit_contents_text", "audit_contents", ["text"], postgresql_using="gin", postgresql_ops=operators
    )

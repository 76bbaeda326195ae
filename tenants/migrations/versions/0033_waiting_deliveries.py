"""An index for the next delivery to each webhook."""

from alembic import op

from tenants.migrations.indexes import indexing

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Replace the index by time only, which a backlog of one webhook made slow for all."""
    with indexing() as indexes:
        indexes.create("ix_outbox_waiting", "outbox", ["state", "tenant_id", "webhook_id", "next_at"])
    op.drop_index("ix_outbox_due", "outbox", if_exists=True)

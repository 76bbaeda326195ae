"""Streams move to Redis; indexes for retention, deliveries, the inbox and gaps."""

from alembic import op

from tenants.migrations.indexes import indexing

revision = "0030"
down_revision = "0028"

_INDEXES = {
    "ix_outbox_created": ("outbox", ["created_at"]),
    "ix_outbox_tenant_created": ("outbox", ["tenant_id", "created_at"]),
    "ix_tickets_created": ("tickets", ["created_at"]),
    "ix_changes_created": ("setting_changes", ["at"]),
    "ix_spending_day": ("spending", ["day"]),
    "ix_chats_assignee": ("chats", ["tenant_id", "assignee"]),
    "ix_chats_state_updated": ("chats", ["tenant_id", "state", "updated_at"]),
    "ix_gaps_article": ("gaps", ["tenant_id", "article_id"]),
}


def upgrade() -> None:
    """Create the indexes while others write, and drop the tables of streams, which were kept for an hour."""
    with indexing() as indexes:
        for name, (table, columns) in _INDEXES.items():
            indexes.create(name, table, columns)
    op.drop_table("stream_events")
    op.drop_table("streams")

"""Chats: sites, conversations between customers and people, their files, consents and webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables of chats, and let a ticket belong to one."""
    with op.batch_alter_table("tickets") as tickets:
        tickets.add_column(sa.Column("chat_id", sa.String(32), nullable=False, server_default=""))
        tickets.add_column(sa.Column("closed_at", sa.DateTime))
        tickets.create_index("ix_tickets_tenant_chat", ["tenant_id", "chat_id"])
    with op.batch_alter_table("tickets") as tickets:
        tickets.alter_column("chat_id", server_default=None)  # only rows from before needed one
    op.create_table(
        "sites",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("origins", sa.JSON, nullable=False),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("secrets", sa.JSON, nullable=False),
        sa.Column("identity_secret", sa.Text),
        sa.Column("identity_required", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Index("ix_sites_tenant", "tenant_id"),
    )
    op.create_table(
        "chats",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("chat_id", sa.String(32), primary_key=True),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("site", sa.String(64), nullable=False),
        sa.Column("channel", sa.String(32), nullable=False),
        sa.Column("locale", sa.String(8), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("assignee", sa.String(255)),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("ticket_id", sa.String(32)),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("confidence", sa.Double),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("reopened", sa.Integer, nullable=False),
        sa.Column("csat", sa.Integer),
        sa.Column("csat_comment", sa.Text, nullable=False),
        sa.Column("customer_seen", sa.Integer, nullable=False),
        sa.Column("operator_seen", sa.Integer, nullable=False),
        sa.Column("waiting_since", sa.DateTime),
        sa.Column("snoozed_until", sa.DateTime),
        sa.Column("resolved_at", sa.DateTime),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("updated_at", sa.DateTime, nullable=False),
        sa.Index("ix_chats_state", "tenant_id", "state", "waiting_since"),
        sa.Index("ix_chats_subject", "tenant_id", "subject", "updated_at"),
        sa.Index("ix_chats_updated", "tenant_id", "updated_at"),
    )
    op.create_table(
        "chat_messages",
        sa.Column("tenant_id", sa.String(255), primary_key=True),
        sa.Column("chat_id", sa.String(32), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("message_id", sa.String(32), nullable=False),
        sa.Column("client_id", sa.String(128)),
        sa.Column("author", sa.String(16), nullable=False),
        sa.Column("operator", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("turn_id", sa.String(128), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("tenant_id", "chat_id", "client_id"),
        sa.UniqueConstraint("tenant_id", "message_id"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "chat_id"], ["chats.tenant_id", "chats.chat_id"], ondelete="CASCADE", name="fk_message_chat"
        ),
    )
    op.create_table(
        "chat_files",
        sa.Column("tenant_id", sa.String(255), primary_key=True),
        sa.Column("file_id", sa.String(32), primary_key=True),
        sa.Column("chat_id", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("media_type", sa.String(128), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "chat_id"], ["chats.tenant_id", "chats.chat_id"], ondelete="CASCADE", name="fk_file_chat"
        ),
    )
    op.create_table(
        "consents",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("consent_id", sa.String(32), primary_key=True),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("site", sa.String(64), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Index("ix_consents_subject", "tenant_id", "subject"),
    )
    op.create_table(
        "webhooks",
        sa.Column("tenant_id", sa.String(255), sa.ForeignKey("tenants.tenant_id"), primary_key=True),
        sa.Column("webhook_id", sa.String(32), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
        sa.Column("secrets", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "outbox",
        sa.Column("tenant_id", sa.String(255), primary_key=True),
        sa.Column("delivery_id", sa.String(32), primary_key=True),
        sa.Column("webhook_id", sa.String(32), nullable=False),
        sa.Column("chat_id", sa.String(32), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.DateTime, nullable=False),
        sa.Column("fault", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("delivered_at", sa.DateTime),
        sa.ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.webhook_id"],
            ondelete="CASCADE",
            name="fk_outbox_webhook",
        ),
        sa.Index("ix_outbox_chat", "tenant_id", "chat_id"),
        sa.Index("ix_outbox_due", "state", "next_at"),
    )


def _of_chat(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "chat_id"], ["chats.tenant_id", "chats.chat_id"], ondelete="CASCADE", name=name
    )

"""Helpers for tests of chats."""

from datetime import UTC, datetime
from secrets import token_hex

from tenants.chats.tables import WebhookRow
from tenants.core import context
from tenants.storage import database


def webhook(*events: str) -> str:
    """Add a webhook of the tenant in context for these events; return its id."""
    row = WebhookRow(
        tenant_id=context.current().tenant_id,
        webhook_id=token_hex(8),
        url="https://shop.example/hook",
        events=list(events),
        secrets=[],
        created_at=datetime.now(UTC),
    )
    with database.writing() as session:
        session.add(row)
    return row.webhook_id

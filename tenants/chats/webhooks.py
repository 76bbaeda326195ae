"""Webhooks: receivers of chat events, with the secrets that sign them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex

from sqlalchemy import select

from tenants.accounts import settings_history
from tenants.chats.outbox import MAIL
from tenants.chats.tables import WebhookRow
from tenants.chats.webhook_events import WEBHOOK_EVENTS, WebhookEvent
from tenants.chats.webhook_signing import new_secret, signing_secrets
from tenants.core.errors import Invalid, NotFound
from tenants.storage import database

MAX_WEBHOOKS = 20
"""Receivers of a tenant. Each one gets a row in the outbox for every message of a chat."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver. `secrets` sign its events, newest first: one, or two for a while after a rotation."""

    webhook_id: str
    url: str
    events: tuple[str, ...]
    secrets: tuple[str, ...]
    created_at: datetime


def add(url: str, events: Sequence[str] = ()) -> Webhook:
    """Add a receiver of the tenant in context.

    :param events: the names of those that it gets; all when empty.
    :raises Invalid: `event_unknown` with the name, `webhooks_too_many`.
    """
    row = WebhookRow(
        webhook_id=token_hex(8),
        url=url,
        events=list(_checked_events(events)),
        secrets=[new_secret(datetime.now(UTC))],
        created_at=datetime.now(UTC),
    )
    with database.writing() as session:
        session.check_room(WebhookRow, MAX_WEBHOOKS, "webhooks_too_many", WebhookRow.webhook_id != MAIL)
        session.add(row)
        settings_history.note(session, "webhook", "added", row.webhook_id, after={"url": row.url, "events": row.events})
    return _webhook(row)


def own() -> tuple[Webhook, ...]:
    """Return the receivers of the tenant in context, oldest first."""
    query = select(WebhookRow).where(WebhookRow.webhook_id != MAIL)
    with database.reading() as session:
        return tuple(_webhook(row) for row in session.scalars(query.order_by(WebhookRow.created_at)))


def get(webhook_id: str) -> Webhook:
    """Return a receiver of the tenant in context. Raises `NotFound` with the code `webhook_unknown`."""
    with database.reading() as session:
        return _webhook(_existing(session.find(WebhookRow, webhook_id)))


def remove(webhook_id: str) -> None:
    """Delete a receiver with its pending deliveries."""
    with database.writing() as session:
        row = _existing(session.find(WebhookRow, webhook_id))
        session.delete(row)
        settings_history.note(session, "webhook", "removed", webhook_id, {"url": row.url, "events": row.events})


def rotate(webhook_id: str, now: datetime | None = None) -> Webhook:
    """Sign with a new secret; the previous one signs too, for `webhook_signing.OVERLAP`."""
    now = now or datetime.now(UTC)
    with database.writing() as session:
        row = _existing(session.find(WebhookRow, webhook_id, lock=True))
        row.secrets = [new_secret(now), row.secrets[0]]
        settings_history.note(session, "webhook", "rotated", webhook_id)
    return _webhook(row, now)


def _checked_events(events: Sequence[str]) -> tuple[WebhookEvent, ...]:
    for name in events:
        if name not in WEBHOOK_EVENTS:
            raise Invalid("event_unknown", name=name[:100], names=", ".join(WEBHOOK_EVENTS))
    return tuple(name for name in WEBHOOK_EVENTS if not events or name in events)


def _existing(row: WebhookRow | None) -> WebhookRow:
    if row is None or row.webhook_id == MAIL:
        raise NotFound("webhook_unknown")
    return row


def _webhook(row: WebhookRow, now: datetime | None = None) -> Webhook:
    secrets = signing_secrets(row.secrets, now or datetime.now(UTC))
    return Webhook(row.webhook_id, row.url, tuple(row.events), secrets, row.created_at)

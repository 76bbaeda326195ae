"""`/webhooks`: receivers of a tenant's chat events and the delivery log."""

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from components.ingest.fetch import canonical
from pipelines.routes import OpenRouter
from tenants.chats import outbox, webhooks
from tenants.chats.outbox import DeliveryState
from tenants.chats.webhooks import Webhook

_ALL, _ONE = "/webhooks", "/webhooks/{webhook_id}"
_DELIVERIES, _DELIVERY = "/deliveries", "/deliveries/{delivery_id}/redeliver"


class NewWebhook(BaseModel, extra="forbid"):
    """Receiver to add; empty `events` selects all events."""

    url: Annotated[str, Field(max_length=2_000)]
    events: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=20)] = ()


class WebhookPart(BaseModel, from_attributes=True):
    """Receiver. `secret` signs its deliveries and is present once, when it has just been created."""

    webhook_id: str
    url: str
    events: tuple[str, ...]
    created_at: datetime
    secret: str | None = None


class WebhooksAnswer(BaseModel):
    """A tenant's receivers, oldest first."""

    webhooks: tuple[WebhookPart, ...]


class DeliveryPart(BaseModel, from_attributes=True):
    """Delivery of an event to one receiver; `dead`: given up after the last attempt."""

    delivery_id: str
    webhook_id: str
    event: str
    state: DeliveryState
    attempts: int
    fault: str
    next_at: datetime
    created_at: datetime
    delivered_at: datetime | None


class DeliveriesAnswer(BaseModel):
    """Deliveries, newest first."""

    deliveries: tuple[DeliveryPart, ...]


class DeliveryAnswer(BaseModel):
    """Scheduled delivery."""

    delivery_id: str


router = OpenRouter("admin", limit=10_000, tags=["webhooks"])


@router.get(_ALL)
def list_webhooks() -> WebhooksAnswer:
    """List all receivers, without secrets."""
    return WebhooksAnswer(webhooks=webhooks.own())


@router.post(_ALL, status_code=201)
def add_webhook(body: NewWebhook) -> WebhookPart:
    """Add a receiver. Its secret is shown only once."""
    return _with_secret(webhooks.add(canonical(body.url), body.events))


@router.delete(_ONE)
def remove_webhook(webhook_id: str) -> WebhooksAnswer:
    """Remove a receiver and its pending deliveries."""
    webhooks.remove(webhook_id)
    return list_webhooks()


@router.post(f"{_ONE}/rotate")
def rotate_webhook(webhook_id: str) -> WebhookPart:
    """Rotate the secret, shown only once. Deliveries are signed with the previous one as well for a day."""
    return _with_secret(webhooks.rotate(webhook_id))


@router.post(f"{_ONE}/test", status_code=202)
def test_webhook(webhook_id: str) -> DeliveryAnswer:
    """Send a test event to a receiver; the result appears among the deliveries."""
    return DeliveryAnswer(delivery_id=outbox.enqueue_test(webhook_id))


@router.get(_DELIVERIES)
def list_deliveries(
    state: DeliveryState | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> DeliveriesAnswer:
    """List the newest deliveries and their results."""
    return DeliveriesAnswer(deliveries=outbox.latest(state=state, limit=limit))


@router.post(_DELIVERY, status_code=202)
def redeliver(delivery_id: str) -> DeliveryAnswer:
    """Retry a delivery under the same id."""
    outbox.deliver_again(delivery_id)
    return DeliveryAnswer(delivery_id=delivery_id)


def _with_secret(webhook: Webhook) -> WebhookPart:
    return WebhookPart.model_validate(webhook).model_copy(update={"secret": webhook.secrets[0]})

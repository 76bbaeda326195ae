"""Outbox of chat and evaluation events for the tenant's webhooks, and of e-mails about them.

An event is written in the transaction that it reports: both are stored or neither. `pipelines.ask.chats.delivery`
sends events; this module holds their state. E-mail is a receiver like any other, with the id `MAIL`.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from threading import Event
from typing import Literal, TypeAlias, get_args

from pydantic_core import to_jsonable_python
from sqlalchemy import func, select, tuple_, update
from sqlalchemy.event import listen

from tenants.chats.tables import OutboxRow, WebhookRow
from tenants.core.context import Tenant, acting_as
from tenants.storage import bus, database
from tenants.storage.mapping import record_of, records
from tenants.storage.sessions import TenantSession

EventName: TypeAlias = Literal[
    "chat.started", "chat.message", "chat.handoff", "chat.state", "chat.rated", "quality.dropped"
]
EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)
MailEvent: TypeAlias = Literal["email.reply", "email.alert"]
MAIL_EVENTS: tuple[MailEvent, ...] = get_args(MailEvent)
MAIL = "email"
_CHANNEL = "deliveries"
TEST_EVENT = "webhook.test"
"""Sent on an admin's request, whatever events a receiver subscribes to."""
DeliveryState: TypeAlias = Literal["pending", "delivered", "dead"]

RETRY_SECONDS = (5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400)
"""Pauses between attempts, as Standard Webhooks advises: more than a day in all, then the delivery is dead."""

LEASE = timedelta(seconds=60)
"""Lease of a claimed delivery; longer than any request to a webhook takes."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for one webhook. `body` is sent and signed, identical at each attempt."""

    tenant_id: str
    delivery_id: str
    webhook_id: str
    event: str
    body: str
    state: DeliveryState
    attempts: int
    next_at: datetime
    fault: str
    created_at: datetime
    delivered_at: datetime | None


arrived = Event()
"""Set in every process when a new event is stored."""


def _announce(_: TenantSession) -> None:
    arrived.set()
    bus.publish(_CHANNEL, "")


bus.on(_CHANNEL, lambda _: arrived.set(), arrived.set)


def enqueue(session: TenantSession, event: EventName, chat_id: str, data: Mapping[str, object]) -> None:
    """Write an event for every webhook of the tenant in context that wants it."""
    now = datetime.now(UTC)
    for webhook in session.scalars(select(WebhookRow)):
        if event in webhook.events:
            session.add(_event(webhook.webhook_id, event, chat_id, data, now))
            listen(session, "after_commit", _announce, once=True)


def add(
    session: TenantSession, receiver: str, event: str, chat_id: str, data: Mapping[str, object], *, due_at: datetime
) -> None:
    """Write an event for one receiver of the tenant in context, to be sent from a time on."""
    row = _event(receiver, event, chat_id, data, datetime.now(UTC))
    row.next_at = due_at
    session.add(row)


def enqueue_test(webhook_id: str) -> str:
    """Queue a test event for a receiver; return the id of the delivery. Raises `NotFound`."""
    with database.writing() as session:
        session.existing(WebhookRow, webhook_id)
        row = _event(webhook_id, TEST_EVENT, "", {}, datetime.now(UTC))
        session.add(row)
        listen(session, "after_commit", _announce, once=True)
    return row.delivery_id


def _event(webhook_id: str, event: str, chat_id: str, data: Mapping[str, object], now: datetime) -> OutboxRow:
    return OutboxRow(
        delivery_id=f"msg_{token_hex(12)}",
        webhook_id=webhook_id,
        chat_id=chat_id,
        event=event,
        body=json.dumps({"type": event, "timestamp": to_jsonable_python(now), "data": data}, ensure_ascii=False),
        next_at=now,
        created_at=now,
    )


def claim(
    limit: int,
    now: datetime | None = None,
    *,
    mail: bool | None = None,
    webhooks: Set[tuple[str, str]] = frozenset(),
    tenants: Set[str] = frozenset(),
) -> tuple[Delivery, ...]:
    """Claim due deliveries, longest due first, at most one of each tenant, with a lease of `LEASE`.

    :param mail: only e-mails, or everything else; None claims both.
    :param webhooks: webhooks to exclude, as (tenant, webhook).
    :param tenants: tenants to exclude.
    """
    now = now or datetime.now(UTC)
    due = select(OutboxRow).where(OutboxRow.state == "pending", OutboxRow.next_at <= now)
    if mail is not None:
        due = due.where((OutboxRow.webhook_id == MAIL) if mail else (OutboxRow.webhook_id != MAIL))
    if webhooks:
        due = due.where(tuple_(OutboxRow.tenant_id, OutboxRow.webhook_id).not_in(webhooks))
    if tenants:
        due = due.where(OutboxRow.tenant_id.not_in(tenants))
    first = due.with_only_columns(
        OutboxRow.tenant_id,
        OutboxRow.delivery_id,
        func.row_number()
        .over(
            partition_by=OutboxRow.tenant_id,
            order_by=(OutboxRow.next_at, OutboxRow.created_at, OutboxRow.delivery_id),
        )
        .label("place"),
    ).subquery()
    firsts = select(first.c.tenant_id, first.c.delivery_id).where(first.c.place == 1)
    chosen = due.where(tuple_(OutboxRow.tenant_id, OutboxRow.delivery_id).in_(firsts)).order_by(OutboxRow.next_at)
    with database.across_tenants(write=True) as session:
        rows = session.scalars(chosen.limit(limit).with_for_update(skip_locked=True)).all()
        for row in rows:
            row.next_at = now + LEASE
        return tuple(record_of(Delivery, row) for row in rows)


def settle(delivery: Delivery, *, fault: str = "", final: bool = False, now: datetime | None = None) -> DeliveryState:
    """Store the result of an attempt; after a `fault` it is retried, or given up after the last attempt.

    :param final: a fault that another attempt would meet again.
    """
    now = now or datetime.now(UTC)
    attempts = delivery.attempts + 1
    state: DeliveryState = "delivered" if not fault else "dead" if final or attempts > len(RETRY_SECONDS) else "pending"
    changed: dict[str, object] = {"attempts": attempts, "fault": fault[:500], "state": state}
    if state == "delivered":
        changed |= {"delivered_at": now}
    elif state == "pending":
        changed |= {"next_at": now + timedelta(seconds=RETRY_SECONDS[attempts - 1])}
    with acting_as(Tenant(delivery.tenant_id, "")), database.writing() as session:
        session.execute(update(OutboxRow).where(OutboxRow.delivery_id == delivery.delivery_id).values(**changed))
    return state


def deliver_again(delivery_id: str) -> None:
    """Put a delivery of the tenant in context back in line, at once. Raises `NotFound`."""
    with database.writing() as session:
        row = session.existing(OutboxRow, delivery_id)
        row.state, row.attempts, row.next_at = "pending", 0, datetime.now(UTC)
        listen(session, "after_commit", _announce, once=True)


def latest(*, state: DeliveryState | None = None, limit: int = 100) -> tuple[Delivery, ...]:
    """Return the tenant's newest deliveries, newest first."""
    query = select(OutboxRow)
    if state is not None:
        query = query.where(OutboxRow.state == state)
    return records(Delivery, query.order_by(OutboxRow.created_at.desc()).limit(limit))


def of_chats(chat_ids: Sequence[str]) -> tuple[Delivery, ...]:
    """Return the deliveries of these chats of the tenant in context."""
    return records(Delivery, select(OutboxRow).where(OutboxRow.chat_id.in_(chat_ids)))

"""Outbox of chat and evaluation events for the tenant's webhooks, and of e-mails about them.

An event is written in the transaction that it reports: both are stored or neither. `pipelines.ask.chats.delivery`
sends events; this module holds their state. E-mail is a receiver like any other, with the id `MAIL`.
"""

import json
import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from secrets import token_hex
from threading import Event
from typing import Literal, TypeAlias

from pydantic_core import to_jsonable_python
from sqlalchemy import select, tuple_, update
from sqlalchemy.event import listen

from tenants.chats import text_quota
from tenants.chats.tables import OutboxRow, WebhookRow
from tenants.chats.webhook_events import MAIL_EVENTS, TEST_EVENT, WebhookEvent
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import RateLimited
from tenants.storage import bus, database
from tenants.storage.mapping import record_of, records
from tenants.storage.tenant_session import TenantSession

log = logging.getLogger("opora.outbox")

MAIL = "email"
_CHANNEL = "deliveries"
DeliveryState: TypeAlias = Literal["pending", "delivered", "dead"]

RETRY_SECONDS = (5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400)
"""Pauses between attempts, as Standard Webhooks advises: more than a day in all, then the delivery is dead."""

MOST_WAITING = 10_000
"""Deliveries to one webhook that may wait. Further events are not stored for it."""

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


def enqueue(session: TenantSession, event: WebhookEvent, chat_id: str, data: Mapping[str, object]) -> None:
    """Write an event for every webhook of the tenant in context that wants it and has room."""
    now = datetime.now(UTC)
    for webhook in session.scalars(select(WebhookRow)):
        if event in webhook.events and _has_room(session, webhook.webhook_id):
            _add(session, _event(webhook.webhook_id, event, chat_id, data, now))
            listen(session, "after_commit", _announce, once=True)


def add(
    session: TenantSession, receiver: str, event: str, chat_id: str, data: Mapping[str, object], *, due_at: datetime
) -> None:
    """Write an event for one receiver of the tenant in context, to be sent from a time on, if it has room."""
    if not _has_room(session, receiver):
        return
    row = _event(receiver, event, chat_id, data, datetime.now(UTC))
    row.next_at = due_at
    _add(session, row)


def enqueue_test(webhook_id: str) -> str:
    """Queue a test event for a receiver; return the id of the delivery.

    :raises NotFound: `webhook_unknown`.
    :raises RateLimited: too many deliveries to it are waiting.
    """
    with database.writing() as session:
        session.existing(WebhookRow, webhook_id)
        if not _has_room(session, webhook_id):
            raise RateLimited(RETRY_SECONDS[1])
        row = _event(webhook_id, TEST_EVENT, "", {}, datetime.now(UTC))
        _add(session, row)
        listen(session, "after_commit", _announce, once=True)
    return row.delivery_id


def _has_room(session: TenantSession, webhook_id: str) -> bool:
    waiting = (OutboxRow.webhook_id == webhook_id, OutboxRow.state == "pending")
    if session.scalar(select(OutboxRow.delivery_id).where(*waiting).offset(MOST_WAITING - 1).limit(1)) is None:
        return True
    log.warning("an event is not stored: %d deliveries to webhook %s are waiting", MOST_WAITING, webhook_id)
    return False


def _add(session: TenantSession, row: OutboxRow) -> None:
    session.add(row)
    text_quota.count(session, row.body)


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
    # One look into the index for each webhook: a backlog must not take longer than a single delivery.
    waiting = (
        OutboxRow.tenant_id == WebhookRow.tenant_id,
        OutboxRow.webhook_id == WebhookRow.webhook_id,
        OutboxRow.state == "pending",
        OutboxRow.next_at <= now,
    )
    order = (OutboxRow.next_at, OutboxRow.created_at, OutboxRow.delivery_id)
    first, due_at = (
        select(column).where(*waiting).order_by(*order).limit(1).scalar_subquery()
        for column in (OutboxRow.delivery_id, OutboxRow.next_at)
    )
    firsts = select(WebhookRow.tenant_id, first, due_at)
    if mail is not None:
        firsts = firsts.where((WebhookRow.webhook_id == MAIL) if mail else (WebhookRow.webhook_id != MAIL))
    if webhooks:
        firsts = firsts.where(tuple_(WebhookRow.tenant_id, WebhookRow.webhook_id).not_in(webhooks))
    if tenants:
        firsts = firsts.where(WebhookRow.tenant_id.not_in(tenants))
    with database.across_tenants() as session:
        found = sorted((due, tenant_id, name) for tenant_id, name, due in session.execute(firsts) if name)
    of_tenants: dict[str, str] = {}
    for _, tenant_id, name in found:
        of_tenants.setdefault(tenant_id, name)
    claimed = (_claim(tenant_id, name, now) for tenant_id, name in of_tenants.items())
    return tuple(islice(filter(None, claimed), limit))


def _claim(tenant_id: str, delivery_id: str, now: datetime) -> Delivery | None:
    """Lease a delivery; None if another process has it."""
    with acting_as(Tenant(tenant_id, "")), database.writing() as session:
        due = (OutboxRow.delivery_id == delivery_id, OutboxRow.state == "pending", OutboxRow.next_at <= now)
        row = session.scalar(select(OutboxRow).where(*due).with_for_update(skip_locked=True))
        if row is None:
            return None
        row.next_at = now + LEASE
        return record_of(Delivery, row)


def settle(
    delivery: Delivery, *, fault: str = "", final: bool = False, sent: bool = True, now: datetime | None = None
) -> DeliveryState:
    """Store the result of an attempt; after a `fault` it is retried, or given up after the last attempt.

    :param final: a fault that another attempt would meet again.
    :param sent: False if there was nothing to send any more.
    """
    now = now or datetime.now(UTC)
    attempts = delivery.attempts + 1
    state: DeliveryState = "delivered" if not fault else "dead" if final or attempts > len(RETRY_SECONDS) else "pending"
    changed: dict[str, object] = {"attempts": attempts, "fault": fault[:500], "state": state}
    if state == "delivered" and sent:
        changed |= {"delivered_at": now}
    elif state == "pending":
        changed |= {"next_at": now + timedelta(seconds=RETRY_SECONDS[attempts - 1])}
    with acting_as(Tenant(delivery.tenant_id, "")), database.writing() as session:
        session.execute(update(OutboxRow).where(OutboxRow.delivery_id == delivery.delivery_id).values(**changed))
    return state


def postpone(delivery: Delivery, pause: timedelta) -> None:
    """Try a delivery of the tenant in context again later, without counting an attempt."""
    with database.writing() as session:
        postponed = update(OutboxRow).where(OutboxRow.delivery_id == delivery.delivery_id)
        session.execute(postponed.values(next_at=datetime.now(UTC) + pause))


def sent_since(moment: datetime) -> int:
    """Return the number of e-mails that the tenant in context has sent since a moment."""
    # A delivery keeps the end of its lease as `next_at`, which the index has.
    delivered = (OutboxRow.webhook_id == MAIL, OutboxRow.state == "delivered", OutboxRow.next_at > moment)
    sent = (OutboxRow.event.in_(MAIL_EVENTS), OutboxRow.delivered_at > moment)
    with database.reading() as session:
        return session.count(OutboxRow, *delivered, *sent)


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

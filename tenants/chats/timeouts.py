"""Changes of chats by time: snoozed chats wake up, and the assistant takes back chats without an operator."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from tenants.chats.change import changing
from tenants.chats.records import Chat, chat_of
from tenants.chats.tables import ChatRow
from tenants.chats.transitions import Event
from tenants.storage import database
from tenants.storage.tables import TenantRow

DUE_AT_ONCE = 100
"""Chats of a tenant that time changes before those of the next tenant."""


def tenants_due(now: datetime) -> tuple[str, ...]:
    """Return the tenants with chats to wake, or in which customers wait for an operator. One query for all tenants."""
    snoozed = and_(ChatRow.state == "snoozed", ChatRow.snoozed_until <= now)
    due = exists().where(ChatRow.tenant_id == TenantRow.tenant_id, or_(snoozed, ChatRow.state == "queued"))
    with database.across_tenants() as session:
        return tuple(session.scalars(select(TenantRow.tenant_id).where(due)))


def tenants_with_chats() -> frozenset[str]:
    """Return the tenants that have chats. One query for all tenants."""
    has_chats = exists().where(ChatRow.tenant_id == TenantRow.tenant_id)
    with database.across_tenants() as session:
        return frozenset(session.scalars(select(TenantRow.tenant_id).where(has_chats)))


def wake_up(now: datetime | None = None) -> tuple[str, ...]:
    """Wake the tenant's snoozed chats that are due, up to `DUE_AT_ONCE`; return their ids."""
    now = now or datetime.now(UTC)
    due = (ChatRow.state == "snoozed", ChatRow.snoozed_until <= now)
    return _each_due(*due, since=ChatRow.snoozed_until, event="woken")


def give_up_waiting(since: datetime, notice: Callable[[Chat], str]) -> tuple[str, ...]:
    """Return chats without an operator since then to the assistant, up to `DUE_AT_ONCE`; their ids. The tickets stay
    open.

    A question from outside stays in the queue: its customer cannot ask the assistant here.

    :param notice: what the customer reads about it.
    """
    overdue = (ChatRow.state == "queued", ChatRow.waiting_since <= since, ChatRow.session_id.is_(None))
    return _each_due(*overdue, since=ChatRow.waiting_since, event="queue_timed_out", notice=notice)


def _each_due(
    *conditions: ColumnElement[bool],
    since: InstrumentedAttribute[datetime | None],
    event: Event,
    notice: Callable[[Chat], str] | None = None,
) -> tuple[str, ...]:
    query = select(ChatRow).where(*conditions).order_by(since).limit(DUE_AT_ONCE)
    with database.reading() as session:
        due = [chat_of(row) for row in session.scalars(query)]
    moved = []
    for chat in due:
        chat_id, words = chat.chat_id, notice(chat) if notice is not None else ""
        with changing(chat_id) as change:
            # It may have changed between the two transactions.
            if change.session.count(ChatRow, ChatRow.chat_id == chat_id, *conditions):
                change.move(event, {"ticket_id": change.row.ticket_id}, text=words)
                moved.append(chat_id)
    return tuple(moved)

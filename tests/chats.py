"""Helpers for tests of chats."""

from datetime import UTC, datetime
from secrets import token_hex

from sqlalchemy import select

from tenants.chats import store, tickets
from tenants.chats.records import BotReply, HandoffRequest
from tenants.chats.tables import TicketRow, WebhookRow
from tenants.chats.tickets import Ticket
from tenants.core import context
from tenants.storage import database
from tenants.storage.mapping import record_of
from tests.records import row


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


def handed_over(turn_id: str, reason: str, question: str, *, session_id: str = "", draft: str = "") -> Ticket:
    """The ticket of a question that the caller asked outside of chats."""
    request = HandoffRequest(reason, question, turn_id, draft)
    chat = store.receive(request, reply=lambda _: BotReply("Передаю.", {}), searchable="?", session_id=session_id)
    ticket = tickets.get(chat.ticket_id or "")
    assert ticket is not None
    return ticket


def all_tickets() -> tuple[Ticket, ...]:
    """Return the tickets of the tenant in context."""
    with database.reading() as session:
        return tuple(record_of(Ticket, one) for one in session.scalars(select(TicketRow)))


def ticket_without_chat(question: str) -> None:
    """A ticket as older versions opened them."""
    with database.writing() as session:
        number, tenant_id = tickets.new_number(), session.tenant_id
        session.add(row(TicketRow, tenant_id=tenant_id, ticket_id=number, subject="anna", question=question))

"""Tickets: questions of chats handed over to a person. A ticket is stored before its number is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import choice

from sqlalchemy import ScalarSelect, select

from tenants.chats.records import HandoffRequest
from tenants.chats.tables import ChatRow, TicketRow
from tenants.storage import database
from tenants.storage.mapping import record_of
from tenants.storage.tenant_session import TenantSession

_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Letters and digits that are not confused when read out over the telephone."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A question that waits for a person. `draft` is the unverified answer, for the operator's eyes only."""

    ticket_id: str
    turn_id: str
    session_id: str
    subject: str
    channel: str
    reason: str
    question: str
    draft: str
    created_at: datetime


def get(ticket_id: str) -> Ticket | None:
    """The tenant's ticket; None when it has none with this id."""
    with database.reading() as session:
        row = session.find(TicketRow, ticket_id)
        return record_of(Ticket, row) if row else None


def new_number() -> str:
    """Return a number to write down, such as `7KQ4M-X2RPA`: 31^10 of them, and one tenant's never meets another's."""
    drawn = "".join(choice(_LETTERS) for _ in range(10))
    return f"{drawn[:5]}-{drawn[5:]}"


def open_ticket(session: TenantSession, row: ChatRow, request: HandoffRequest, channel: str) -> Ticket:
    """Return the chat's open ticket, or open one. A visitor of a site has one ticket for all their chats."""
    number = row.ticket_id or (_held_elsewhere(session, row) if row.site else None)
    stored = session.find(TicketRow, number) if number else None
    if stored is None:
        stored = TicketRow(
            ticket_id=new_number(),
            turn_id=request.turn_id,
            reason=request.reason,
            question=request.question,
            draft=request.draft,
            channel=channel,
            session_id=row.session_id or row.chat_id,
            chat_id=row.chat_id,
            subject=row.subject,
            created_at=datetime.now(UTC),
        )
        session.add(stored)
    row.ticket_id = stored.ticket_id
    return record_of(Ticket, stored)


def close_ticket(session: TenantSession, row: ChatRow) -> None:
    """Close the chat's ticket, unless another chat of the visitor has it too."""
    number, row.ticket_id = row.ticket_id, None
    if number is None or _held_elsewhere(session, row, number) is not None:
        return
    ticket = session.find(TicketRow, number)
    if ticket is not None:
        ticket.closed_at = datetime.now(UTC)


def pass_on(session: TenantSession, chat_ids: Sequence[str] | ScalarSelect[str], *, with_question: bool) -> None:
    """Give the tickets of chats that are about to be deleted to other chats which have the same ticket.

    :param with_question: keep the question and the draft, which come from the deleted chat.
    """
    others = select(TicketRow, ChatRow.chat_id).join(ChatRow, ChatRow.ticket_id == TicketRow.ticket_id)
    held = TicketRow.chat_id.in_(chat_ids), ChatRow.chat_id.not_in(chat_ids)
    for ticket, heir in session.execute(others.where(*held)).all():
        ticket.chat_id = ticket.session_id = heir
        if not with_question:
            ticket.turn_id = ticket.question = ticket.draft = ""
    session.flush()


def _held_elsewhere(session: TenantSession, row: ChatRow, number: str | None = None) -> str | None:
    """Return the ticket if another chat of the visitor has it: any of their tickets, or this one."""
    theirs = ChatRow.subject == row.subject, ChatRow.site == row.site
    held = ChatRow.ticket_id.is_not(None) if number is None else ChatRow.ticket_id == number
    return session.scalar(select(ChatRow.ticket_id).where(*theirs, ChatRow.chat_id != row.chat_id, held).limit(1))

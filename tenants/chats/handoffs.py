"""Questions handed over to a person. A ticket is stored before its number is shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import choice

from sqlalchemy import ColumnElement, delete, select

from settings import get_settings
from tenants.storage import database
from tenants.storage.mapping import record_of
from tenants.storage.tables import TicketRow

_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Letters and digits that are not confused when read out over the telephone."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """One handed-over question. `draft` is the unverified answer, for the operator's eyes only."""

    ticket_id: str
    turn_id: str
    session_id: str
    subject: str
    channel: str
    reason: str
    question: str
    draft: str
    created_at: datetime


def new_ticket(
    turn_id: str,
    reason: str,
    question: str,
    *,
    session_id: str,
    draft: str,
    channel: str,
    subject: str,
    chat_id: str,
) -> TicketRow:
    """Return a ticket that is not stored yet, for a transaction that stores its chat too.

    :param reason: the stable code of the refusal or of the risk.
    :param channel: from the tenant's policy, which is not to be read inside of a transaction.
    :param subject: whose question it is.
    :param chat_id: the chat that goes over to a person with it.
    """
    return TicketRow(
        ticket_id=_number(),
        turn_id=turn_id,
        session_id=session_id,
        subject=subject,
        channel=channel,
        reason=reason,
        question=question,
        draft=draft,
        chat_id=chat_id,
        created_at=datetime.now(UTC),
    )


def get(ticket_id: str) -> Ticket | None:
    """The tenant's ticket; None when it has none with this id."""
    with database.reading() as session:
        row = session.find(TicketRow, ticket_id)
        return record_of(Ticket, row) if row else None


def of_person(subject: str | None, session_id: str | None) -> tuple[Ticket, ...]:
    """The tenant's tickets of a person, of a session, or, of both, those that fit both."""
    with database.reading() as session:
        rows = session.scalars(select(TicketRow).where(*_owned_by(subject, session_id)))
        return tuple(record_of(Ticket, row) for row in rows)


def erase(subject: str | None, session_id: str | None) -> None:
    """Delete the same tickets."""
    with database.writing() as session:
        session.execute(delete(TicketRow).where(*_owned_by(subject, session_id)))


def forget_old(now: datetime | None = None) -> None:
    """Drop tickets without a chat, which older versions opened, after the days of the settings."""
    before = (now or datetime.now(UTC)) - timedelta(days=get_settings().ticket_days)
    with database.across_tenants(write=True) as session:
        session.execute(delete(TicketRow).where(TicketRow.created_at < before, TicketRow.chat_id == ""))


def _owned_by(subject: str | None, session_id: str | None) -> Iterator[ColumnElement[bool]]:
    if subject is not None:
        yield TicketRow.subject == subject
    if session_id is not None:
        yield TicketRow.session_id == session_id


def _number() -> str:
    """A number to write down, such as `7KQ4M-X2RPA`: 31^10 of them, and one tenant's never meets another's."""
    drawn = "".join(choice(_LETTERS) for _ in range(10))
    return f"{drawn[:5]}-{drawn[5:]}"

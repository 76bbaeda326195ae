"""Questions handed over to a person. A ticket is stored before its number is shown."""

from dataclasses import dataclass
from datetime import datetime
from secrets import choice

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


def get(ticket_id: str) -> Ticket | None:
    """The tenant's ticket; None when it has none with this id."""
    with database.reading() as session:
        row = session.find(TicketRow, ticket_id)
        return record_of(Ticket, row) if row else None


def new_number() -> str:
    """Return a number to write down, such as `7KQ4M-X2RPA`: 31^10 of them, and one tenant's never meets another's."""
    drawn = "".join(choice(_LETTERS) for _ in range(10))
    return f"{drawn[:5]}-{drawn[5:]}"

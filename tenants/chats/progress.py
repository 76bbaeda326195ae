"""Outcome of a chat, updated in its row with every change, so that statistics over many chats take one query.

For the definitions and their sources see docs/guides/desk.md, "Figures".
"""

from datetime import datetime, timedelta

from tenants.chats.records import Author, Body, Kind
from tenants.chats.tables import ChatRow
from tenants.chats.transitions import Event

ENDS_AFTER = timedelta(hours=24)
"""A chat with the assistant has ended after this time without a message."""
RETURNS_WITHIN = timedelta(days=7)
"""A customer who returns later has a new matter."""

NO_MATTER = frozenset({"irrelevant", "nonsense", "blocked"})
"""Outcomes of turns such as a greeting or thanks: they do not change the outcome of the question before them."""
_RETURNS: frozenset[Event] = frozenset({"customer_message", "person_requested", "reopened"})


def ended_at(row: ChatRow, now: datetime) -> datetime | None:
    """Return when a chat ended, as known at `now`; None while it goes on."""
    if row.state == "resolved":
        return row.resolved_at
    idle = row.state == "bot" and row.ticket_id is None and now - row.updated_at >= ENDS_AFTER
    return row.updated_at if idle and row.asked_at is not None else None


def note_event(row: ChatRow, event: Event, now: datetime) -> None:
    """Update the row's statistics for an event. Call it before the event changes the row."""
    ended = ended_at(row, now) if event in _RETURNS and row.returned_at is None else None
    if ended is not None and now - ended <= RETURNS_WITHIN:
        row.returned_at = now
    if event == "person_requested" and row.requested_at is None:
        row.requested_at = now


def note_message(row: ChatRow, author: Author, kind: Kind, turn_id: str, body: Body, now: datetime) -> None:
    """Update the row's statistics for a message."""
    if author == "customer" and row.asked_at is None:
        row.asked_at = now
    elif author == "operator" and kind == "text" and row.replied_at is None:
        row.replied_at = now
    elif author == "bot" and kind == "text" and turn_id:
        row.answered_at = row.answered_at or now
        turn = body.get("turn")
        if not isinstance(turn, dict):
            return
        outcome = str(turn.get("outcome") or "")
        if not row.outcome or outcome not in NO_MATTER:
            row.outcome, row.outcome_reason = outcome, str(turn.get("refusal_reason") or "")

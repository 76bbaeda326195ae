"""Conversation memory for follow-up questions: the last ten turns, kept for a day after the last one.

A conversation belongs to a tenant and a subject, so guessing a session id gives no access to another person's.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter
from sqlalchemy import delete

from tenants.chats.tables import ConversationRow
from tenants.core import context
from tenants.storage import database
from tenants.storage.mapping import columns_of

RETENTION = timedelta(hours=24)
MAX_TURNS = 10


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn: the rewritten question, its outcome, and the options it offered."""

    question: str
    outcome: str
    options: tuple[str, ...] = ()


_TURNS = TypeAdapter(tuple[PastTurn, ...])


def recall(session_id: str) -> tuple[PastTurn, ...]:
    """Return the turns of the caller's conversation, oldest first; empty if it is unknown or too old."""
    caller = context.current()
    with database.reading() as session:
        row = session.find(ConversationRow, caller.subject, session_id)
        if row is None or row.updated_at < datetime.now(UTC) - RETENTION:
            return ()
        return _TURNS.validate_python(row.turns)


def remember(session_id: str, turn: PastTurn) -> None:
    """Add a turn to the caller's conversation; drop the turns beyond ten, and expired ones."""
    caller = context.current()
    now = datetime.now(UTC)
    with database.writing() as session:
        row = session.locked(ConversationRow, subject=caller.subject, session_id=session_id, turns=[], updated_at=now)
        earlier = row.turns if row.updated_at >= now - RETENTION else []
        row.turns = [*earlier, columns_of(turn)][-MAX_TURNS:]
        row.updated_at = now


def forget(session_id: str) -> None:
    """Delete the caller's conversation, if there is one."""
    caller = context.current()
    with database.writing() as session:
        session.execute(
            delete(ConversationRow).where(
                ConversationRow.subject == caller.subject, ConversationRow.session_id == session_id
            )
        )

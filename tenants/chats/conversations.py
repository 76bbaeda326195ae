"""Conversation memory for follow-up questions: the last ten turns, kept for a day after the last one.

A conversation belongs to a tenant and a subject, so guessing a session id gives no access to another person's.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tenants.core import context
from tenants.storage import database
from tenants.storage.tables import ConversationRow, PastTurnJson

RETENTION = timedelta(hours=24)
MAX_TURNS = 10


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn: the rewritten question, its outcome, and the options it offered."""

    question: str
    outcome: str
    options: tuple[str, ...] = ()


def recall(session_id: str) -> tuple[PastTurn, ...]:
    """Return the turns of the caller's conversation, oldest first; empty if it is unknown or too old."""
    caller = context.current()
    with database.reading() as session:
        row = session.find(ConversationRow, caller.subject, session_id)
        return _turns(row) if row is not None and row.updated_at >= datetime.now(UTC) - RETENTION else ()


def remember(session_id: str, turn: PastTurn) -> None:
    """Add a turn to the caller's conversation; drop the turns beyond ten, and expired ones."""
    caller = context.current()
    now = datetime.now(UTC)
    with database.writing() as session:
        row = session.locked(ConversationRow, subject=caller.subject, session_id=session_id, turns=[], updated_at=now)
        earlier = row.turns if row.updated_at >= now - RETENTION else []
        row.turns = [*earlier, PastTurnJson(question=turn.question, outcome=turn.outcome, options=list(turn.options))]
        row.turns = row.turns[-MAX_TURNS:]
        row.updated_at = now


def _turns(row: ConversationRow) -> tuple[PastTurn, ...]:
    return tuple(PastTurn(turn["question"], turn["outcome"], tuple(turn["options"])) for turn in row.turns)

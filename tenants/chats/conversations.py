"""Conversation memory for follow-up questions: the last ten turns, kept for a day after the last one.

A conversation belongs to a tenant and a subject, so guessing a session id gives no access to another person's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, delete, select

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


@dataclass(frozen=True, slots=True)
class Conversation:
    """A person's conversation, oldest turn first."""

    session_id: str
    subject: str
    turns: tuple[PastTurn, ...]
    updated_at: datetime


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


def of_person(subject: str | None, session_id: str | None) -> tuple[Conversation, ...]:
    """Return the tenant's conversations of a person, in a session, or, given both, those that match both."""
    with database.reading() as session:
        rows = session.scalars(select(ConversationRow).where(*_owned_by(subject, session_id)))
        return tuple(Conversation(row.session_id, row.subject, _turns(row), row.updated_at) for row in rows)


def erase(subject: str | None, session_id: str | None) -> None:
    """Delete the conversations that `of_person` returns."""
    with database.writing() as session:
        session.execute(delete(ConversationRow).where(*_owned_by(subject, session_id)))


def _owned_by(subject: str | None, session_id: str | None) -> Iterator[ColumnElement[bool]]:
    if subject is not None:
        yield ConversationRow.subject == subject
    if session_id is not None:
        yield ConversationRow.session_id == session_id


def _turns(row: ConversationRow) -> tuple[PastTurn, ...]:
    return tuple(PastTurn(turn["question"], turn["outcome"], tuple(turn["options"])) for turn in row.turns)

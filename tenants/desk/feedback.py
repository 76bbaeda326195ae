"""Verdicts on answers: one per person and recorded turn.

An anonymous turn has no person here either: it has one verdict, the last. A verdict is deleted when its turn is
erased or pruned, and when the person who gave it is erased.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from sqlalchemy import ColumnElement, delete, func, select

from tenants.chats.tables import ChatRow
from tenants.core import context
from tenants.core.errors import NotFound
from tenants.desk.tables import FeedbackRow
from tenants.storage import database
from tenants.storage.audit_tables import AuditContentRow, AuditRow
from tenants.storage.mapping import record_of, records
from tenants.storage.tenant_session import TenantSession

Thumb: TypeAlias = Literal["up", "down"]
Reason: TypeAlias = Literal["wrong", "incomplete", "unclear", "outdated", "other"]

THUMBS: Mapping[str, Thumb] = {thumb: thumb for thumb in get_args(Thumb)}


@dataclass(frozen=True, slots=True)
class Feedback:
    """A verdict.

    :param person: digest of the author (`tenants.privacy.persons.digest`); empty for an anonymous turn.
    :param session_id: of the turn.
    :param comment: without personal data; may be empty.
    """

    turn_id: str
    person: str
    session_id: str
    thumb: Thumb
    reason: Reason | None
    comment: str
    at: datetime


def give(turn_id: str, person: str, thumb: Thumb, reason: Reason | None = None, comment: str = "") -> Feedback:
    """Store a verdict, replacing this person's earlier one on the turn.

    Raises `NotFound` with the code `turn_unknown`: the tenant's audit has no such turn, or it was erased. A visitor of
    a site may judge only turns of their chats.
    """
    beside = AuditContentRow.sequence == AuditRow.sequence
    turn = (
        select(AuditContentRow.person, AuditContentRow.session_id)
        .join(AuditRow, beside)
        .where(AuditRow.turn_id == turn_id)
        # A concurrent erasure of the turn waits, and then deletes this verdict too.
        .with_for_update(of=AuditContentRow, key_share=True)
    )
    with database.writing() as session:
        judged = session.execute(turn).first()
        if judged is None or not _may_judge(session, judged.session_id):
            raise NotFound("turn_unknown")
        row = FeedbackRow(
            turn_id=turn_id,
            person=person if judged.person else "",
            session_id=judged.session_id,
            thumb=thumb,
            reason=reason,
            comment=comment,
            at=datetime.now(UTC),
        )
        return record_of(Feedback, session.merge(row))


def _may_judge(session: TenantSession, session_id: str) -> bool:
    """Return whether the caller may judge the turns of a session: a visitor of a site, those of their chats there."""
    caller = context.current()
    if not caller.site:
        return True
    theirs = ChatRow.subject == caller.subject, ChatRow.site.in_(("", caller.site))
    return session.count(ChatRow, ChatRow.chat_id == session_id, *theirs) > 0


def latest(thumb: Thumb | None = None, *, limit: int | None = None) -> tuple[Feedback, ...]:
    """Return the tenant's newest verdicts, newest first.

    :param thumb: None: both.
    """
    query = select(FeedbackRow)
    if thumb is not None:
        query = query.where(FeedbackRow.thumb == thumb)
    order = FeedbackRow.at.desc(), FeedbackRow.turn_id, FeedbackRow.person
    return records(Feedback, query.order_by(*order).limit(limit))


def judged_answers(outcomes: Sequence[str]) -> int:
    """Count the turns with these outcomes that have at least one verdict."""
    turn = AuditRow.turn_id == FeedbackRow.turn_id
    query = select(func.count(FeedbackRow.turn_id.distinct())).join(AuditRow, turn)
    with database.reading() as session:
        return session.scalar(query.where(AuditRow.outcome.in_(outcomes))) or 0


def forget(session: TenantSession, turns: ColumnElement[bool]) -> None:
    """Delete all verdicts on these turns, inside the transaction that erases or prunes them.

    :param turns: a condition on `AuditRow`.
    """
    judged = select(AuditRow.turn_id).where(turns)
    session.execute(delete(FeedbackRow).where(FeedbackRow.turn_id.in_(judged)))

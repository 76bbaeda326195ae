"""Questions by which a tenant's people evaluate their own assistant, and what a right reply to each is.

The expectations are sealed: encrypted at rest, read by evaluation runs and by editors, and used for nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex

from pydantic import TypeAdapter
from sqlalchemy import delete, exists, select

from tenants.core.errors import Invalid, NotFound
from tenants.desk.tables import EvaluationQuestionRow
from tenants.storage import database
from tenants.storage.mapping import columns_of
from tenants.storage.tables import TenantRow
from tenants.storage.tenant_session import TenantSession

MOST = 200
"""Questions of a tenant."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected reply: it shows these facts, it offers or cites this article, or it refuses.

    :param facts: all must be shown; wordings of one fact that are equally good are separated by `|`.
    :param article: the title, the heading or the id of the article.
    """

    facts: tuple[str, ...] = ()
    article: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """A question and its expectation. `question_id` is empty until it is stored."""

    question: str
    expected: Expected
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """Counts of questions that were new, got another expectation, or stayed the same."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0


def list_questions() -> tuple[EvaluationQuestion, ...]:
    """Return the questions of the tenant, in the order in which they were added."""
    with database.reading() as session:
        return tuple(map(_question, _rows(session)))


def tenants_with_questions() -> frozenset[str]:
    """Return the tenants that have questions. One query for all tenants."""
    has_questions = exists().where(EvaluationQuestionRow.tenant_id == TenantRow.tenant_id)
    with database.across_tenants() as session:
        return frozenset(session.scalars(select(TenantRow.tenant_id).where(has_questions)))


def had_any(at: datetime) -> bool:
    """Return whether the tenant has questions that it already had at a time."""
    with database.reading() as session:
        return session.count(EvaluationQuestionRow, EvaluationQuestionRow.created_at <= at) > 0


def save(questions: Iterable[EvaluationQuestion]) -> Stored:
    """Add questions. A question with the same words as a stored one replaces its expectation.

    :raises Invalid: `evaluation_questions_too_many`; nothing is stored then.
    """
    with database.writing() as session:
        session.lock_tenant()
        known = {normalised(row.question): row for row in _rows(session)}
        wanted = {normalised(one.question): one for one in questions}
        if len(known.keys() | wanted.keys()) > MOST:
            raise Invalid("evaluation_questions_too_many", limit=MOST)
        stored, now = Counter[str](), datetime.now(UTC)
        for place, (words, one) in enumerate(wanted.items()):
            row = known.get(words)
            if row is not None and _question(row).expected == one.expected:
                stored["unchanged"] += 1
                continue
            stored["added" if row is None else "changed"] += 1
            if row is not None:
                session.delete(row)
            at = row.created_at if row is not None else now + timedelta(microseconds=place)
            session.add(_row(one, at))
    return Stored(**stored)


def remove(question_ids: Sequence[str]) -> None:
    """Remove questions. Raises `NotFound` with the code `evaluation_question_unknown`; nothing is removed then."""
    chosen = delete(EvaluationQuestionRow).where(EvaluationQuestionRow.question_id.in_(set(question_ids)))
    with database.writing() as session:
        gone = session.scalars(chosen.returning(EvaluationQuestionRow.question_id)).all()
        if len(gone) < len(set(question_ids)):
            raise NotFound("evaluation_question_unknown")


def normalised(question: str) -> str:
    """Return a question in the form in which two of them are compared."""
    return " ".join(question.casefold().split())


def _rows(session: TenantSession) -> Sequence[EvaluationQuestionRow]:
    query = select(EvaluationQuestionRow)
    return session.scalars(query.order_by(EvaluationQuestionRow.created_at, EvaluationQuestionRow.question_id)).all()


def _row(one: EvaluationQuestion, at: datetime) -> EvaluationQuestionRow:
    return EvaluationQuestionRow(
        question_id=token_hex(8),
        question=one.question,
        expected=columns_of(one.expected),
        created_at=at,
    )


def _question(row: EvaluationQuestionRow) -> EvaluationQuestion:
    expected = TypeAdapter(Expected).validate_python(row.expected)
    return EvaluationQuestion(row.question, expected, row.question_id)

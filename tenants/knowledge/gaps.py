"""What the knowledge base could not answer: counted, and reopened when it is asked again.

A gap is one normal form of a question and one reason. It is counted in the transaction that records the turn, so each
turn counts once, and what an erased turn added is taken away with it.

A gap is closed once its questions are answered, usually by an article; `pipelines.ask.articles.closing` asks them
again before it closes one. It reopens when a customer asks and gets no answer. A dismissed gap needs no article: it
is still counted and stays dismissed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal, TypeAlias, get_args

from sqlalchemy import ColumnElement, case, delete, func, select, update

from tenants.core import context
from tenants.core.batches import batches
from tenants.core.errors import NotFound
from tenants.knowledge.tables import GapAskingRow, GapRow
from tenants.storage import database
from tenants.storage.audit_tables import AuditContentRow, AuditRow
from tenants.storage.mapping import record_of, records
from tenants.storage.tenant_session import TenantSession

Status: TypeAlias = Literal["open", "closed", "dismissed"]
STATUSES: tuple[Status, ...] = get_args(Status)

MOST = 1_000
"""Gaps that are looked at together."""

_WORDINGS = 1_000


@dataclass(frozen=True, slots=True)
class Miss:
    """A question that found no answer, or a topic that an answer left open. Two with one key and reason are one gap.

    :param question: the customer's words, redacted; the topic if the answer left several open.
    :param key: its normal form; that of the standalone question for a follow-up, or of the topic that was left open.
    :param stems: what it is about.
    :param doc_ids: the nearest documents that did not answer it, nearest first.
    """

    reason: str
    question: str
    key: str
    stems: tuple[str, ...]
    doc_ids: tuple[str, ...]

    @property
    def gap_id(self) -> str:
        """The gap that this adds to: the same for every tenant, and unique within one."""
        return sha256(f"{self.reason}\x00{self.key}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RecordedMiss:
    """A miss with its time and the number of its turn in the audit."""

    miss: Miss
    at: datetime
    sequence: int


@dataclass(frozen=True, slots=True)
class Gap:
    """One unanswered question.

    :param doc_ids: the nearest documents that did not answer it when it was last asked, nearest first.
    :param reopened: how often it was asked again after somebody had closed it.
    :param closed_at: when it was closed or dismissed, and `decided_by` by whom; both say nothing of an open one.
    :param article_id: the article that is being, or was, written for it.
    :param vector: what the question means, as 32-bit numbers of a vector of length 1, once somebody has asked;
        `vector_of` names the words and the model it was made of.
    """

    gap_id: str
    reason: str
    question: str
    stems: tuple[str, ...]
    doc_ids: tuple[str, ...]
    count: int
    reopened: int
    status: Status
    first_at: datetime
    last_at: datetime
    closed_at: datetime | None
    decided_by: str = ""
    article_id: str | None = None
    vector: bytes | None = field(default=None, repr=False)
    vector_of: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """One turn that asked for what is missing.

    :param question: its own words, redacted.
    :param session_id: the chat or conversation that it belongs to; empty where there is none.
    """

    gap_id: str
    question: str
    sequence: int
    turn_id: str
    at: datetime
    outcome: str
    session_id: str


def all(status: Status | None = "open", *, limit: int = MOST) -> tuple[Gap, ...]:
    """The tenant's gaps, those asked most first.

    :param status: None: of every kind.
    """
    query = select(GapRow)
    if status is not None:
        query = query.where(GapRow.status == status)
    order = GapRow.count.desc(), GapRow.last_at.desc(), GapRow.gap_id
    return records(Gap, query.order_by(*order).limit(limit))


def counts() -> Mapping[Status, int]:
    """How many gaps there are of each kind."""
    query = select(GapRow.status, func.count())
    with database.reading() as session:
        stored = {row[0]: row[1] for row in session.execute(query.group_by(GapRow.status))}
    return {status: stored.get(status, 0) for status in STATUSES}


def get(gap_id: str) -> Gap:
    """One gap. Raises `NotFound` with the code `gap_unknown`."""
    with database.reading() as session:
        return record_of(Gap, session.existing(GapRow, gap_id))


def of_article(article_id: str) -> tuple[Gap, ...]:
    """The gaps that an article is written for, those asked most first."""
    return records(Gap, select(GapRow).where(GapRow.article_id == article_id).order_by(GapRow.count.desc()))


def askings(gap_ids: Sequence[str], *, limit: int = 50) -> tuple[Asking, ...]:
    """The newest turns that asked for what is missing, newest first."""
    query = (
        select(GapAskingRow, AuditRow, AuditContentRow.session_id)
        .join(AuditRow, _same_turn(AuditRow))
        .outerjoin(AuditContentRow, _same_turn(AuditContentRow))
        .where(GapAskingRow.gap_id.in_(gap_ids))
        .order_by(GapAskingRow.sequence.desc())
        .limit(limit)
    )
    with database.reading() as session:
        return tuple(
            record_of(
                Asking,
                asking,
                turn_id=turn.turn_id or "",
                at=turn.at,
                outcome=turn.outcome or "",
                session_id=session_id or "",
            )
            for asking, turn, session_id in session.execute(query)
        )


def decide(gap_ids: Sequence[str], status: Status) -> tuple[Gap, ...]:
    """Close, dismiss or reopen gaps, all or none. Raises `NotFound` with the code `gap_unknown`.

    A closed gap reopens when the question is asked again without an answer; a dismissed one stays dismissed.
    """
    now, by = (None, "") if status == "open" else (datetime.now(UTC), context.current().subject)
    with database.writing() as session:
        _change(session, gap_ids, status=status, closed_at=now, decided_by=by)
    rows: dict[str, GapRow] = {}
    with database.reading() as session:
        for batch in batches(gap_ids):
            rows |= {row.gap_id: row for row in session.scalars(select(GapRow).where(GapRow.gap_id.in_(batch)))}
    return tuple(record_of(Gap, rows[gap_id]) for gap_id in gap_ids if gap_id in rows)


def reopen_for(session: TenantSession, article_id: str) -> None:
    """Reopen the gaps that an article had closed, in the transaction that withdraws it."""
    own = GapRow.article_id == article_id, GapRow.status == "closed"
    session.execute(update(GapRow).where(*own).values(status="open", closed_at=None, decided_by=""))


def link(session: TenantSession, gap_ids: Sequence[str], article_id: str) -> None:
    """Make these the gaps that an article is written for. Raises `NotFound` with the code `gap_unknown`."""
    own = GapRow.article_id == article_id
    session.execute(update(GapRow).where(own).values(article_id=None))
    assign(session, gap_ids, article_id)


def assign(session: TenantSession, gap_ids: Sequence[str], article_id: str) -> None:
    """Add gaps to those that an article is written for. Raises `NotFound` with the code `gap_unknown`."""
    _change(session, gap_ids, article_id=article_id)


def put_vectors(vectors: Mapping[str, tuple[bytes, str]]) -> None:
    """Keep what questions mean, by gap: vector and what it was made of. Gaps that are gone meanwhile are ignored."""
    values = {
        column: case({gap_id: made[place] for gap_id, made in vectors.items()}, value=GapRow.gap_id)
        for place, column in enumerate((GapRow.vector, GapRow.vector_of))
    }
    with database.writing() as session:
        session.execute(update(GapRow).where(GapRow.gap_id.in_(vectors)).values(values))


def count(session: TenantSession, misses: Sequence[RecordedMiss]) -> None:
    """Count the misses of turns, inside the transaction that records these turns."""
    gap_ids = {recorded.miss.gap_id for recorded in misses}
    stored = select(GapRow).where(GapRow.gap_id.in_(gap_ids))
    rows = {row.gap_id: row for row in session.scalars(stored)}
    for recorded in misses:
        row = rows.get(recorded.miss.gap_id)
        if row is None:
            row = rows[recorded.miss.gap_id] = _new(recorded)
            session.add(row)
        elif row.status == "closed" and row.closed_at is not None and recorded.at > row.closed_at:
            row.status, row.closed_at, row.decided_by = "open", None, ""
            row.reopened += 1
        row.count += 1
        row.last_at = recorded.at
        row.doc_ids = list(recorded.miss.doc_ids)
        session.add(GapAskingRow(gap_id=row.gap_id, sequence=recorded.sequence, question=recorded.miss.question))
    session.flush()


def wordings(session: TenantSession, sequences: Sequence[int]) -> frozenset[str]:
    """Return the questions of these turns that the knowledge base could not answer."""
    askings = select(GapAskingRow.question)
    asked = (session.scalars(askings.where(GapAskingRow.sequence.in_(batch))) for batch in batches(sequences))
    return frozenset(question for questions in asked for question in questions if question)


def forget(session: TenantSession, sequences: Sequence[int]) -> None:
    """Uncount the misses of these turns. A gap without other turns is deleted; one with others takes their words."""
    for batch in batches(sequences):
        chosen = GapAskingRow.sequence.in_(batch)
        times = session.execute(
            select(GapAskingRow.gap_id, func.count()).where(chosen).group_by(GapAskingRow.gap_id)
        ).all()
        session.execute(delete(GapAskingRow).where(chosen))
        for gap_id, count in times:
            row = session.get_one(GapRow, (session.tenant_id, gap_id), populate_existing=True)
            row.count -= count
            if row.count <= 0:
                session.delete(row)
                continue
            askings = select(GapAskingRow.question).where(GapAskingRow.gap_id == gap_id)
            wordings = session.scalars(askings.order_by(GapAskingRow.sequence).limit(_WORDINGS)).all()
            if wordings and row.question not in wordings:
                row.question, row.vector, row.vector_of = wordings[0], None, ""
        session.flush()


def _change(session: TenantSession, gap_ids: Sequence[str], **values: object) -> None:
    """Change gaps by one statement for many. Raises `NotFound` with the code `gap_unknown`."""
    for batch in batches(dict.fromkeys(gap_ids)):
        change = update(GapRow).where(GapRow.gap_id.in_(batch)).values(**values)
        result = session.execute(change.execution_options(synchronize_session=False))
        if result.rowcount < len(batch):  # type: ignore[attr-defined]
            raise NotFound(GapRow.unknown)


def _same_turn(rows: type[AuditRow] | type[AuditContentRow]) -> ColumnElement[bool]:
    return rows.sequence == GapAskingRow.sequence


def _new(recorded: RecordedMiss) -> GapRow:
    return GapRow(
        gap_id=recorded.miss.gap_id,
        reason=recorded.miss.reason,
        question=recorded.miss.question,
        stems=list(recorded.miss.stems),
        count=0,
        reopened=0,
        status="open",
        first_at=recorded.at,
    )

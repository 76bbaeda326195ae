"""What the knowledge base could not answer: counted, reopened when it is asked again, grouped by meaning.

A gap is one normal form of a question and one reason. It is counted in the transaction that records the turn, so each
turn counts once, and what an erased turn added is taken away with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal, TypeAlias

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from tenants import context, database
from tenants.errors import NotFound
from tenants.models import GapAskingRow, GapRow

Status: TypeAlias = Literal["open", "closed"]

MEANING = 0.5
"""Minimum share of common stems (Jaccard) for two gaps to be grouped."""

_PARAMETERS = 500
_WORDINGS = 1_000


@dataclass(frozen=True, slots=True)
class Miss:
    """A question that found no answer, or a topic that an answer left open. Two with one key and reason are one gap.

    :param question: redacted, as it was asked.
    :param key: its normal form.
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


@dataclass(frozen=True, slots=True)
class Group:
    """Gaps with the same meaning, most frequent first."""

    gaps: tuple[Gap, ...]

    @property
    def count(self) -> int:
        """How often any of them was asked."""
        return sum(gap.count for gap in self.gaps)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The nearest documents of all of them, each once."""
        return tuple(dict.fromkeys(doc_id for gap in self.gaps for doc_id in gap.doc_ids))


def all(status: Status | None = "open", *, limit: int = 1_000) -> tuple[Gap, ...]:
    """The tenant's gaps, those asked most first.

    :param status: None: both kinds.
    """
    query = select(GapRow).where(GapRow.tenant_id == context.current().tenant_id)
    if status is not None:
        query = query.where(GapRow.status == status)
    order = GapRow.count.desc(), GapRow.last_at.desc(), GapRow.gap_id
    with database.reading() as session:
        return tuple(_gap(row) for row in session.scalars(query.order_by(*order).limit(limit)))


def close(gap_id: str) -> Gap:
    """Mark the gap as filled. It reopens when the question is asked again. Raises `NotFound`."""
    return _set(gap_id, "closed")


def reopen(gap_id: str) -> Gap:
    """Undo `close`. Raises `NotFound`."""
    return _set(gap_id, "open")


def grouped(gaps: Iterable[Gap]) -> tuple[Group, ...]:
    """Gaps by meaning, the group asked most first.

    Each gap, in the order given, joins the first group whose leading gap shares half of its stems, or leads a new one:
    the same gaps in the same order always make the same groups.
    """
    groups: list[list[Gap]] = []
    leaders: dict[str, list[int]] = {}
    for gap in gaps:
        rivals = sorted({number for stem in gap.stems for number in leaders.get(stem, ())})
        near = next((number for number in rivals if _overlap(gap, groups[number][0]) >= MEANING), None)
        if near is not None:
            groups[near].append(gap)
            continue
        for stem in set(gap.stems):
            leaders.setdefault(stem, []).append(len(groups))
        groups.append([gap])
    return tuple(sorted((Group(tuple(members)) for members in groups), key=lambda group: -group.count))


def count(session: Session, tenant_id: str, misses: Sequence[RecordedMiss]) -> None:
    """Count the misses of turns, inside the transaction that records these turns."""
    gap_ids = {recorded.miss.gap_id for recorded in misses}
    stored = select(GapRow).where(GapRow.tenant_id == tenant_id, GapRow.gap_id.in_(gap_ids))
    rows = {row.gap_id: row for row in session.scalars(stored)}
    for recorded in misses:
        row = rows.get(recorded.miss.gap_id)
        if row is None:
            row = rows[recorded.miss.gap_id] = _new(tenant_id, recorded)
            session.add(row)
        elif row.closed_at is not None and recorded.at > row.closed_at:
            row.status, row.closed_at = "open", None
            row.reopened += 1
        row.count += 1
        row.last_at = recorded.at
        row.doc_ids = list(recorded.miss.doc_ids)
        session.add(
            GapAskingRow(
                tenant_id=tenant_id,
                gap_id=row.gap_id,
                sequence=recorded.sequence,
                question=recorded.miss.question,
            )
        )
    session.flush()


def forget(session: Session, tenant_id: str, sequences: Sequence[int]) -> None:
    """Uncount the misses of these turns. A gap without other turns is deleted; one with others takes their words."""
    for start in range(0, len(sequences), _PARAMETERS):
        chosen = (
            GapAskingRow.tenant_id == tenant_id,
            GapAskingRow.sequence.in_(sequences[start : start + _PARAMETERS]),
        )
        times = session.execute(
            select(GapAskingRow.gap_id, func.count()).where(*chosen).group_by(GapAskingRow.gap_id)
        ).all()
        session.execute(delete(GapAskingRow).where(*chosen))
        for gap_id, count in times:
            row = session.get_one(GapRow, (tenant_id, gap_id), populate_existing=True)
            row.count -= count
            if row.count <= 0:
                session.delete(row)
                continue
            askings = select(GapAskingRow.question).where(
                GapAskingRow.tenant_id == tenant_id, GapAskingRow.gap_id == gap_id
            )
            wordings = session.scalars(askings.order_by(GapAskingRow.sequence).limit(_WORDINGS)).all()
            if wordings and row.question not in wordings:
                row.question = wordings[0]
        session.flush()


def _set(gap_id: str, status: Status) -> Gap:
    with database.writing() as session:
        row = session.get(GapRow, (context.current().tenant_id, gap_id))
        if row is None:
            raise NotFound
        row.status = status
        row.closed_at = datetime.now(UTC) if status == "closed" else None
        return _gap(row)


def _new(tenant_id: str, recorded: RecordedMiss) -> GapRow:
    return GapRow(
        tenant_id=tenant_id,
        gap_id=recorded.miss.gap_id,
        reason=recorded.miss.reason,
        question=recorded.miss.question,
        stems=list(recorded.miss.stems),
        count=0,
        reopened=0,
        status="open",
        first_at=recorded.at,
    )


def _overlap(gap: Gap, other: Gap) -> float:
    ours, theirs = set(gap.stems), set(other.stems)
    return len(ours & theirs) / len(ours | theirs)


def _gap(row: GapRow) -> Gap:
    return Gap(
        gap_id=row.gap_id,
        reason=row.reason,
        question=row.question,
        stems=tuple(row.stems),
        doc_ids=tuple(row.doc_ids),
        count=row.count,
        reopened=row.reopened,
        status="closed" if row.status == "closed" else "open",
        first_at=row.first_at,
        last_at=row.last_at,
        closed_at=row.closed_at,
    )

"""Statistics of recorded turns: outcomes and reasons, cited documents, unanswered questions.

Turns of every channel count, chats included. Erased turns still count, because the links of the audit remain; pruned
turns do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select

from tenants.insight.period import Period
from tenants.knowledge.tables import DocumentRow, GapAskingRow, GapRow
from tenants.storage.audit_tables import AuditDocumentRow, AuditRow
from tenants.storage.searching import counting
from tenants.storage.tenant_session import TenantSession

SHOWN = 20


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document and the number of answers that cite it. `title` is empty if the document was removed."""

    doc_id: str
    title: str
    turns: int


@dataclass(frozen=True, slots=True)
class MissedQuestion:
    """A gap, and the number of turns that asked for it in the period."""

    gap_id: str
    question: str
    status: str
    turns: int


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """Everything about the turns of a period. `by_reason` counts those that have one."""

    total: int
    by_outcome: Mapping[str, int]
    by_reason: Mapping[str, int]
    topics: tuple[CitedDocument, ...]
    missed: tuple[MissedQuestion, ...]


def figures(period: Period) -> TurnFigures:
    """Compute the statistics of the tenant in context, most frequent first."""
    with counting() as session:
        by_outcome, by_reason = _outcomes(session, period)
        return TurnFigures(
            total=sum(by_outcome.values()),
            by_outcome=by_outcome,
            by_reason=by_reason,
            topics=_topics(session, period),
            missed=_missed(session, period),
        )


def _outcomes(session: TenantSession, period: Period) -> tuple[Mapping[str, int], Mapping[str, int]]:
    turns = (AuditRow.kind == "turn", period.holds(AuditRow.at))
    query = select(AuditRow.outcome, AuditRow.reason, func.count()).where(*turns)
    by_outcome: dict[str, int] = {}
    by_reason: dict[str, int] = {}
    for outcome, reason, count in session.execute(query.group_by(AuditRow.outcome, AuditRow.reason)):
        by_outcome[outcome or ""] = by_outcome.get(outcome or "", 0) + count
        if reason:
            by_reason[reason] = by_reason.get(reason, 0) + count
    return _most_first(by_outcome), _most_first(by_reason)


def _topics(session: TenantSession, period: Period) -> tuple[CitedDocument, ...]:
    turns = func.count().label("turns")
    same_link = AuditDocumentRow.sequence == AuditRow.sequence
    cited = (
        select(AuditDocumentRow.doc_id, turns)
        .join(AuditRow, same_link)
        .where(AuditDocumentRow.cited.is_(True), period.holds(AuditRow.at))
        .group_by(AuditDocumentRow.doc_id)
        .order_by(turns.desc(), AuditDocumentRow.doc_id)
        .limit(SHOWN)
        .subquery()
    )
    its_document = DocumentRow.doc_id == cited.c.doc_id
    titled = select(cited.c.doc_id, func.coalesce(DocumentRow.title, ""), cited.c.turns).outerjoin(
        DocumentRow, its_document
    )
    rows = session.execute(titled.order_by(cited.c.turns.desc(), cited.c.doc_id))
    return tuple(CitedDocument(doc_id, title, count) for doc_id, title, count in rows)


def _missed(session: TenantSession, period: Period) -> tuple[MissedQuestion, ...]:
    turns = func.count().label("turns")
    same_link = GapAskingRow.sequence == AuditRow.sequence
    # Counted without the gaps: joined to them, SQLite reads every turn of the period for each gap.
    asked = (
        select(GapAskingRow.gap_id, turns)
        .join(AuditRow, same_link)
        .where(period.holds(AuditRow.at))
        .group_by(GapAskingRow.gap_id)
        .order_by(turns.desc(), GapAskingRow.gap_id)
        .limit(SHOWN)
        .subquery()
    )
    query = select(GapRow.gap_id, GapRow.question, GapRow.status, asked.c.turns).join(
        asked, GapRow.gap_id == asked.c.gap_id
    )
    rows = session.execute(query.order_by(asked.c.turns.desc(), GapRow.gap_id))
    return tuple(MissedQuestion(*row) for row in rows)


def _most_first(counts: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))

"""Runs of the evaluation over the tenant's own knowledge base: what they found out, for the tenant's people to see."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from tenants.desk.tables import EvaluationRunRow
from tenants.storage import database
from tenants.storage.mapping import columns_of, records
from tenants.storage.tables import JsonObject

MOST = 100
"""Runs that are kept of a tenant; the oldest goes for a new one."""

_NEWEST_FIRST = EvaluationRunRow.created_at.desc(), EvaluationRunRow.run_id.desc()


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """One run with its summary, `evaluation.summary.v1`."""

    run_id: str
    created_at: datetime
    summary: JsonObject


def add(run: EvaluationRun) -> None:
    """Keep a run of the tenant in context."""
    newest = select(EvaluationRunRow.run_id).order_by(*_NEWEST_FIRST).limit(MOST)
    with database.writing() as session:
        session.add(EvaluationRunRow(**columns_of(run)))
        session.flush()
        session.remove(EvaluationRunRow, EvaluationRunRow.run_id.not_in(newest))


def newest() -> tuple[EvaluationRun, ...]:
    """The tenant's runs, the newest first."""
    return records(EvaluationRun, select(EvaluationRunRow).order_by(*_NEWEST_FIRST))

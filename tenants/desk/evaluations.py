"""Runs of the evaluation over the tenant's own knowledge base: what they found out, for the tenant's people to see."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select

from tenants.core import context
from tenants.desk.tables import EvaluationRunRow
from tenants.storage import database
from tenants.storage.tables import JsonObject

MOST = 100
"""Runs that are kept of a tenant; the oldest goes for a new one."""


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """One run with its summary, `evaluation.summary.v1`."""

    run_id: str
    created_at: datetime
    summary: JsonObject


def add(run: EvaluationRun) -> None:
    """Keep a run of the tenant in context."""
    tenant_id = context.current().tenant_id
    newest = (
        select(EvaluationRunRow.run_id)
        .where(EvaluationRunRow.tenant_id == tenant_id)
        .order_by(EvaluationRunRow.created_at.desc(), EvaluationRunRow.run_id.desc())
        .limit(MOST)
    )
    with database.writing() as session:
        session.add(
            EvaluationRunRow(tenant_id=tenant_id, run_id=run.run_id, created_at=run.created_at, summary=run.summary)
        )
        session.flush()
        session.execute(
            delete(EvaluationRunRow)
            .where(EvaluationRunRow.tenant_id == tenant_id, EvaluationRunRow.run_id.not_in(newest))
            .execution_options(synchronize_session=False)
        )


def newest() -> tuple[EvaluationRun, ...]:
    """The tenant's runs, the newest first."""
    query = (
        select(EvaluationRunRow)
        .where(EvaluationRunRow.tenant_id == context.current().tenant_id)
        .order_by(EvaluationRunRow.created_at.desc(), EvaluationRunRow.run_id.desc())
    )
    with database.reading() as session:
        return tuple(EvaluationRun(row.run_id, row.created_at, row.summary) for row in session.scalars(query))

"""Summaries of runs over a tenant's own knowledge base, stored with the tenant: figures for its administrators."""

from dataclasses import asdict
from math import isfinite

from evaluation.metrics.claims import points_at_shares
from evaluation.metrics.results import SetReport, reported
from evaluation.runs import Run
from evaluation.workspace import SUBJECT
from tenants.core.context import Tenant, acting_as
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from tenants.storage.tables import JsonObject

SCHEMA = "evaluation.summary.v1"


def keep(run: Run, tenant_id: str) -> None:
    """Store a run's summary with the tenant that was asked."""
    with acting_as(Tenant(tenant_id, SUBJECT)):
        evaluations.add(EvaluationRun(run.run_id, run.created_at, summary(run)))


def summary(run: Run) -> JsonObject:
    """Summarise a run: figures with intervals, targets, the curve of an answer key; no questions or answers."""
    reports = reported(run)
    return {
        "schema": SCHEMA,
        "pipeline": run.state.pipeline,
        "code": run.state.code,
        "sets": [_set(report) for report in reports],
        "targets": [
            {
                "set": judged.target.set,
                "figure": judged.target.figure,
                "demand": judged.target.demand,
                "value": judged.value,
                "met": judged.met,
            }
            for report in reports
            for judged in report.targets()
        ],
    }


def _set(report: SetReport) -> JsonObject:
    return {
        "name": report.name,
        "n": report.n,
        "figures": {name: asdict(one) for name, one in report.figures.items() if isfinite(one.value)},
        "outcomes": dict(report.outcomes),
        "claims": [asdict(point) for point in dict.fromkeys(points_at_shares(report.claims))],
    }

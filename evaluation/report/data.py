"""A run as JSON."""

from collections.abc import Sequence
from dataclasses import asdict

from evaluation.cases import Record
from evaluation.metrics.results import FACTS, SetReport, missed
from evaluation.stored_runs import SCHEMA, Run


def as_json(run: Run, reports: Sequence[SetReport]) -> dict[str, object]:
    """Return the whole run: every figure with its interval, every point of the curve, every failed case."""
    return {
        "schema": SCHEMA,
        "run": run.run_id,
        "created_at": run.created_at.isoformat(),
        "state": asdict(run.state),
        "concurrency": run.concurrency,
        "sets": [
            {**_set_as_json(report), "index": asdict(set_run.index) if set_run.index else None}
            for report, set_run in zip(reports, run.sets, strict=True)
        ],
        "skipped": [{"name": name, "reason": "absent"} for name in run.skipped],
        "targets": [
            {**judged.target.model_dump(exclude_none=True), "value": judged.value, "met": judged.met}
            for report in reports
            for judged in report.targets()
        ],
    }


def _set_as_json(report: SetReport) -> dict[str, object]:
    return {
        "name": report.name,
        "n": report.n,
        "seconds": round(report.seconds, 2),
        "figures": {name: asdict(figure) for name, figure in report.figures.items()},
        "reference": {name: asdict(figure) for name, figure in report.reference.items()},
        "outcomes": dict(report.outcomes),
        "unjudged": dict(report.unjudged),
        "degraded": dict(report.degraded),
        "claims": [asdict(point) for point in report.claims],
        "failures": [_failure_as_json(record) for record in report.failures],
    }


def _failure_as_json(record: Record) -> dict[str, str]:
    case, wanted = record.case, missed(record)
    if wanted == FACTS:
        wanted = " + ".join(case.must_contain) + "".join(f" - {wording}" for wording in case.must_not_contain)
    return {
        "case_id": case.case_id,
        "question": case.question,
        "wanted": wanted,
        "got": " / ".join(filter(None, (record.outcome, record.reason, record.text[:300]))),
        "outcome": record.outcome,
        "text": record.text,
    }

"""Pages of evaluation runs: the list, and the figures, targets and curves of one run."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from components.language.texts import text_or
from pipelines.routes import OpenRouter
from tenants.core import context
from tenants.core.errors import NotFound
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from ui.desk.insights import plots
from ui.desk.rendering import Desk, reader_locale

HEADLINES = (
    "answer_precision",
    "answer_recall",
    "false_answer_rate",
    "right_or_offered",
    "hit@1",
    "hit@5",
    "facts_in_answer",
)


def router(desk: Desk) -> OpenRouter:
    endpoints = OpenRouter("ingest", page=True, include_in_schema=False)

    @endpoints.get("/desk/evaluation/measured")
    def show_runs(run: Annotated[str, Query(max_length=100)] = "") -> Response:
        runs = evaluations.newest()
        chosen = _chosen(runs, run)
        return desk.page(
            "insight/measured.html",
            section="insight",
            tab="evaluation",
            runs=runs,
            chosen=chosen,
            headlines=HEADLINES,
            figure_name=lambda name: text_or(name, f"evaluation.figure.{name}", reader_locale()),
            curve=lambda points: plots.curve([(one["claimed"], one["answer_precision"]) for one in points]),
            tenant_id=context.current().tenant_id,
        )

    return endpoints


def _chosen(runs: tuple[EvaluationRun, ...], run_id: str) -> EvaluationRun | None:
    if not run_id:
        return runs[0] if runs else None
    found = next((one for one in runs if one.run_id == run_id), None)
    if found is None:
        raise NotFound("evaluation_unknown")
    return found

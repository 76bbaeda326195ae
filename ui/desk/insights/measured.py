"""Pages of evaluation runs: the list, and the figures, targets and curves of one run."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel
from starlette.responses import Response

from components.language.texts import text
from pipelines import problems
from pipelines.routes import OpenRouter
from tenants.core import context
from tenants.core.errors import NotFound
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from ui.desk.insights import plots
from ui.desk.insights.tabs import tabs
from ui.desk.view import Desk

SCOPE = "ingest"
HEADLINES = (
    "answer_precision",
    "answer_recall",
    "false_answer_rate",
    "right_or_offered",
    "hit@1",
    "hit@5",
    "facts_in_answer",
)
_PATH = "/desk/evaluation/measured"


class Figure(BaseModel):
    """Figure with its 95% interval."""

    value: float
    low: float
    high: float
    n: int


class Point(BaseModel):
    """Point of a curve of an answer key."""

    claimed: float
    answer_precision: float
    answer_recall: float
    false_answer_rate: float


class MeasuredSet(BaseModel):
    """Data set of a run."""

    name: str
    n: int
    figures: dict[str, Figure]
    claims: tuple[Point, ...]

    @property
    def headlines(self) -> list[tuple[str, Figure]]:
        """Return the most important of the measured figures."""
        return [(name, self.figures[name]) for name in HEADLINES if name in self.figures]


class Demand(BaseModel):
    """Target, and whether it is met."""

    set: str
    figure: str
    demand: str
    met: bool


class Summary(BaseModel):
    """Fields of `evaluation.summary.v1` that the page uses."""

    pipeline: str
    sets: tuple[MeasuredSet, ...]
    targets: tuple[Demand, ...]

    def demand(self, set_name: str, figure: str) -> Demand | None:
        """Return the target of a figure."""
        return next((one for one in self.targets if (one.set, one.figure) == (set_name, figure)), None)


def router(desk: Desk) -> OpenRouter:
    """Return the page."""
    endpoints = OpenRouter(SCOPE, page=True, include_in_schema=False)

    @endpoints.get(_PATH)
    def show_runs(run: Annotated[str, Query(max_length=100)] = "") -> Response:
        runs = evaluations.newest()
        chosen = _chosen(runs, run)
        locale = problems.caller.get().locale
        return desk.page(
            "insight/measured.html",
            section="insight",
            tabs=tabs("evaluation"),
            runs=[(one, Summary.model_validate(one.summary)) for one in runs],
            chosen=chosen,
            summary=Summary.model_validate(chosen.summary) if chosen else None,
            figure_name=lambda name: _figure_name(name, locale),
            curve=lambda points: plots.curve([(one.claimed, one.answer_precision) for one in points]),
            tenant_id=context.current().tenant_id,
        )

    return endpoints


def _chosen(runs: tuple[EvaluationRun, ...], run_id: str) -> EvaluationRun | None:
    """Return the requested run, or the newest. Raises `NotFound`: `evaluation_unknown`."""
    if not run_id:
        return runs[0] if runs else None
    found = next((one for one in runs if one.run_id == run_id), None)
    if found is None:
        raise NotFound("evaluation_unknown")
    return found


def _figure_name(name: str, locale: str) -> str:
    try:
        return text(f"evaluation.figure.{name}", locale)
    except KeyError:
        return name

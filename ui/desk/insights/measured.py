"""Runs of the evaluation as a page: which there are, and the figures, demands and curves of one of them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from components.language.texts import text
from pipelines import problems
from pipelines.gate import Route
from tenants.core import context
from tenants.core.errors import NotFound
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from ui.desk.insights import plots
from ui.desk.insights.tabs import tabs
from ui.desk.view import Desk

SCOPE = "ingest"
HEADLINES = (
    "right_of_claimed",
    "right_of_answerable",
    "claimed_of_unanswerable",
    "right_or_offered",
    "hit@1",
    "hit@5",
    "facts_in_answer",
    "false_answer",
)
_PATH = "/desk/evaluation/measured"

ROUTES = (Route("GET", _PATH, scope=SCOPE, page=True),)


class Figure(BaseModel):
    """A figure with its 95% interval."""

    value: float
    low: float
    high: float
    n: int


class Point(BaseModel):
    """A point of an answer key's curve."""

    claimed: float
    right_of_claimed: float
    right_of_answerable: float
    claimed_of_unanswerable: float


class MeasuredSet(BaseModel):
    """One set of a run."""

    name: str
    n: int
    figures: dict[str, Figure]
    claims: tuple[Point, ...]

    @property
    def headlines(self) -> list[tuple[str, Figure]]:
        """The figures that matter most, of those that were measured."""
        return [(name, self.figures[name]) for name in HEADLINES if name in self.figures]


class Demand(BaseModel):
    """A target, and whether it is met."""

    set: str
    figure: str
    demand: str
    met: bool


class Summary(BaseModel):
    """What the page reads of `evaluation.summary.v1`."""

    pipeline: str
    sets: tuple[MeasuredSet, ...]
    targets: tuple[Demand, ...]

    def demand(self, set_name: str, figure: str) -> Demand | None:
        """The target of a figure."""
        return next((one for one in self.targets if (one.set, one.figure) == (set_name, figure)), None)


def router(desk: Desk) -> APIRouter:
    """The page."""
    endpoints = APIRouter(include_in_schema=False)

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
            curve=lambda points: plots.curve([(one.claimed, one.right_of_claimed) for one in points]),
            tenant_id=context.current().tenant_id,
        )

    return endpoints


def _chosen(runs: tuple[EvaluationRun, ...], run_id: str) -> EvaluationRun | None:
    """The run to show: the one asked for, else the newest. Raises `NotFound`: `evaluation_unknown`."""
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

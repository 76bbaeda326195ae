"""Pages of the tenant's own evaluation: the plot over time, failures, changes, and the questions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile
from starlette.responses import Response

from components.language.texts import text, text_or
from pipelines import desk_gate, problems
from pipelines.ask.evaluation import questions, report
from pipelines.ask.evaluation.comparison import DROP
from pipelines.ask.evaluation.marking import MARKS
from pipelines.ask.evaluation.questions import COLUMNS, FILE_BYTES, Fault, Upload
from pipelines.ask.evaluation.usecase import Evaluation, last_due, zone_of
from pipelines.request_bodies import form_with_file
from pipelines.routes import OpenRouter, opens
from tenants.accounts import policy
from tenants.core.errors import Busy, Invalid, OporaError
from tenants.desk import evaluation_questions, evaluation_results, evaluations
from tenants.desk.evaluation_questions import MOST
from tenants.desk.evaluation_results import EvaluationResult
from ui.desk.insights import plots
from ui.desk.rendering import Desk, back_to, may, or_again, reader_locale

_PATH = "/desk/evaluation"
_QUESTIONS = f"{_PATH}/questions"
_SHOWN_RUNS = 60
_AXES = ("quality", "relevance", "factuality")

STYLES: Mapping[str, str] = {
    "answered": "autonomous",
    "offered": "assisted",
    "refused": "open",
    "missed": "reopened",
    "wrong": "unresolved",
}
"""Colours of the plot by mark; the style sheet defines them for results of chats."""


class QuestionForm(BaseModel):
    question: Annotated[str, Field(max_length=4_000)] = ""
    facts: Annotated[str, Field(max_length=20_000)] = ""
    article: Annotated[str, Field(max_length=2_000)] = ""
    refused: bool = False


def router(desk: Desk, evaluation: Evaluation) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=100_000, page=True, include_in_schema=False)

    @endpoints.get(_PATH)
    def show_runs(run: Annotated[str, Query(max_length=32)] = "") -> Response:
        return _runs(desk, evaluation, run)

    @endpoints.post(f"{_PATH}/start")
    @or_again(lambda refused: _runs(desk, evaluation, "", refused), OporaError)
    def start() -> Response:
        evaluation.start()
        return back_to(_PATH)

    @endpoints.post(f"{_PATH}/seen")
    def acknowledge(back: Annotated[str, Form(max_length=1_000)] = "") -> Response:
        evaluation_results.acknowledge()
        return back_to(desk_gate.local(back, _PATH))

    @endpoints.post(f"{_PATH}/hour")
    @opens(scope="admin")
    @or_again(lambda refused, **_: _runs(desk, evaluation, "", refused), Invalid)
    def set_hour(hour: Annotated[str, Form(pattern=r"^(|\d{1,2})$")] = "") -> Response:
        policy.change(evaluation_hour=int(hour) if hour else None)
        return back_to(_PATH)

    @endpoints.get(_QUESTIONS)
    def show_questions(question: Annotated[str, Query(max_length=2_000)] = "") -> Response:
        return _questions(desk, QuestionForm(question=question))

    @endpoints.post(_QUESTIONS)
    @or_again(lambda refused, form: _questions(desk, form, refused=refused), Invalid, Busy)
    async def add(form: Annotated[QuestionForm, Form()]) -> Response:
        typed = questions.typed(form.question, form.facts, form.article, refused=form.refused)
        await questions.add_in_turn([typed])
        return back_to(f"{_QUESTIONS}#added")

    @endpoints.post(f"{_QUESTIONS}/file")
    @opens(limit=FILE_BYTES, files=True)
    async def upload(request: Request) -> Response:
        async with form_with_file(request, fields=5) as form:
            file = form.get("file")
            name, data = (file.filename or "", await file.read()) if isinstance(file, UploadFile) else ("", b"")
        try:
            if not name:
                raise Invalid("evaluation_file_missing")
            uploaded = await questions.receive(name, data)
        except OporaError as refused:
            return await run_in_threadpool(_questions, desk, refused=refused)
        return await run_in_threadpool(_questions, desk, uploaded=uploaded)

    @endpoints.post(f"{_QUESTIONS}/remove")
    def remove(question: Annotated[list[str], Form(max_length=MOST)]) -> Response:
        evaluation_questions.remove(question)
        return back_to(_QUESTIONS)

    return endpoints


def _runs(desk: Desk, evaluation: Evaluation, run_id: str, refused: OporaError | None = None) -> Response:
    queued = evaluation.is_queued()  # Read before the runs, so that a run that ends in between is shown.
    results = evaluation_results.latest()
    points = [one for one in results if one.state == "done"][:_SHOWN_RUNS][::-1]
    chosen = run_id or (points[-1].run_id if points else "")
    rules = policy.latest()
    return desk.page(
        "insight/evaluation.html",
        refused,
        section="insight",
        tab="evaluation",
        questions=len(evaluation_questions.list_questions()),
        results=results,
        points=points,
        running=next((one for one in results[:1] if report.is_running(one)), None),
        going=queued or any(map(report.is_running, results[:1])),
        shown=report.report(chosen) if chosen else None,
        plot=_plot(points),
        axes=_axes(points),
        marks=MARKS,
        styles=STYLES,
        unseen=evaluation_results.unseen_loss(),
        rules=rules,
        zone=zone_of(rules),
        next_night=_next_night(rules),
        drop=DROP,
        may_set=may("admin"),
        measured=bool(evaluations.newest()),
    )


def _questions(
    desk: Desk,
    typed: QuestionForm | None = None,
    *,
    refused: OporaError | None = None,
    uploaded: Upload | None = None,
) -> Response:
    return desk.page(
        "insight/questions.html",
        refused,
        section="insight",
        tab="evaluation",
        questions=evaluation_questions.list_questions(),
        limit=MOST,
        columns=COLUMNS,
        megabytes=FILE_BYTES // 10**6,
        typed=typed or QuestionForm(),
        fault=_in_words(refused) if refused else "",
        uploaded=uploaded,
        reason=_reason,
    )


def _in_words(refused: OporaError) -> str:
    """Return why a file or a form was rejected; files have separate texts."""
    return text_or(problems.detail(refused), f"cli.refusal.{refused.code}", reader_locale(), **refused.params)


def _reason(fault: Fault) -> str:
    return text(f"service.{fault.code}.detail", reader_locale(), limit=MOST, article=fault.article)


def _plot(points: Sequence[EvaluationResult]) -> plots.Columns:
    parts = {one.run_id: {STYLES[mark]: 100 * share for mark, share in shares(one).items()} for one in points}
    return plots.stacked(parts, [STYLES[mark] for mark in MARKS], highest=100)


def shares(result: EvaluationResult) -> dict[str, float]:
    figures: Mapping[str, Any] = result.figures
    return {mark: figures["marks"].get(mark, 0) / (figures["n"] or 1) for mark in MARKS}


def _axes(points: Sequence[EvaluationResult]) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return lines of the scores given by models, by axis; empty if no model was used."""
    by_run: list[Any] = [one.figures["axes"] for one in points]
    values = {axis: [axes.get(axis) for axes in by_run] for axis in _AXES}
    return {axis: plots.line(of_axis) for axis, of_axis in values.items() if any(one is not None for one in of_axis)}


def _next_night(rules: policy.Policy) -> datetime | None:
    tomorrow = last_due(rules, datetime.now(UTC) + timedelta(days=1))
    return tomorrow.astimezone(ZoneInfo(zone_of(rules))) if tomorrow else None

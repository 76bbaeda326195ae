"""`/evaluation` over HTTP: a tenant's own evaluation questions, and the runs over them."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import Query, Request
from starlette.responses import Response

from pipelines.ask.evaluation import questions, report
from pipelines.ask.evaluation.questions import FILE_BYTES, QuestionSet
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.routes import OpenRouter, opens
from tenants.desk import evaluation_questions, evaluation_results
from ui.api.insight import download

_QUESTIONS, _FILE, _RESULTS = "/evaluation/questions", "/evaluation/questions/file", "/evaluation/results"


def router(evaluations: Evaluation) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=1_000_000, tags=["evaluation"])

    @endpoints.get(_QUESTIONS, response_model=None)
    @opens(desk=True)
    def list_questions(format: Literal["json", "csv"] = "json") -> Response | dict[str, object]:
        """List the questions with what is expected; as a CSV file, it can be uploaded again."""
        if format == "csv":
            return download(questions.exported(), "csv", "evaluation-questions")
        return {"questions": [questions.as_json(one) for one in evaluation_questions.list_questions()]}

    @endpoints.post(_QUESTIONS)
    async def add_questions(body: QuestionSet) -> dict[str, object]:
        """Add questions, all or none. An existing question gets the new expectation."""
        return asdict(await questions.add_in_turn(body.questions))

    @endpoints.post(_FILE)
    @opens(limit=FILE_BYTES)
    async def upload_questions(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=300)]
    ) -> dict[str, object]:
        """Add the questions of a CSV or XLSX file, sent as the body. Reports invalid rows and adds the rest."""
        uploaded = await questions.receive(name, await request.body())
        return questions.upload_as_json(uploaded)

    @endpoints.delete(f"{_QUESTIONS}/{{question_id}}", status_code=HTTPStatus.NO_CONTENT)
    def remove_question(question_id: str) -> None:
        """Remove a question."""
        evaluation_questions.remove([question_id])

    @endpoints.get(_RESULTS)
    def list_results() -> dict[str, object]:
        """List the runs, newest first."""
        return {"results": [report.result_as_json(one) for one in evaluation_results.latest()]}

    @endpoints.post(_RESULTS, status_code=HTTPStatus.ACCEPTED)
    def start_run() -> dict[str, object]:
        """Start a run in the background."""
        evaluations.start()
        return {"state": "running"}

    @endpoints.get(f"{_RESULTS}/{{run_id}}")
    def show_result(run_id: str) -> dict[str, object]:
        """Return a run with its failed questions and the differences from the previous run."""
        return report.as_json(report.report(run_id))

    return endpoints

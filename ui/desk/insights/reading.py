"""Answers to review: an editor marks each as right or wrong, and `opora evaluate calibrate` uses the marks."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from fastapi import Form, Query
from starlette.responses import Response

from pipelines.ask.usecase import Ask
from pipelines.routes import OpenRouter
from tenants.audit import search
from tenants.core import context
from tenants.desk import feedback
from tenants.desk.feedback import Reason, Thumb
from tenants.privacy import persons
from ui.desk import chat_view
from ui.desk.rendering import Desk, back_to

PAGE = 10
WANTED = 20
"""Minimum number of reviewed answers for choosing a threshold (`evaluation.metrics.accuracy_coverage.MIN_CLAIMS`)."""
_PATH = "/desk/reading"

Judgement: TypeAlias = Literal["right", "partly", "wrong"]
_VERDICTS: Mapping[Judgement, tuple[Thumb, Reason | None]] = {
    "right": ("up", None),
    "partly": ("down", "incomplete"),
    "wrong": ("down", "wrong"),
}


def router(desk: Desk, ask: Ask) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=2000, page=True, include_in_schema=False)

    @endpoints.get(_PATH)
    def show_answers(before: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None) -> Response:
        caller = context.current()
        records = search.unjudged(persons.digest(caller.tenant_id, caller.subject), before=before, limit=PAGE + 1)
        turns = [(one, chat_view.parsed_turn((one.content or {}).get("answer"))) for one in records[:PAGE]]
        shown = [(one, turn, chat_view.passages(turn)) for one, turn in turns if turn is not None]
        return desk.page(
            "insight/reading.html",
            section="insight",
            tab="reading",
            shown=shown,
            judged=feedback.judged_answers(search.ANSWERS),
            wanted=WANTED,
            tenant_id=caller.tenant_id,
            verdicts=tuple(_VERDICTS),
            following=records[PAGE - 1].sequence if len(records) > PAGE else None,
            before=before,
        )

    @endpoints.post(f"{_PATH}/judge")
    def judge(turn_id: Annotated[str, Form(max_length=128)], verdict: Annotated[Judgement, Form()]) -> Response:
        thumb, reason = _VERDICTS[verdict]
        ask.judge(turn_id.replace("\0", ""), thumb, reason)
        return back_to(_PATH)

    return endpoints

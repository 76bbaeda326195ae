"""Playground page: a question under one or two settings, side by side, with its path through the pipeline."""

from typing import Annotated, TypeAlias

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from components.turn import PASSES
from pipelines.ask.chats import thread
from pipelines.ask.contract import QUESTION_LIMIT
from pipelines.ask.playground import MOST_EXCHANGES, Earlier, PlaygroundRequest, Trial, Tried, try_out
from pipelines.ask.runner import Runner
from pipelines.problems import refused_as
from pipelines.routes import OpenRouter
from tenants.chats import store
from tenants.chats.records import MAX_SEQ
from tenants.core.errors import OporaError
from ui.desk import chat_view
from ui.desk.rendering import Desk

_PATH = "/desk/playground"
_SIDES = ("a", "b")
_THRESHOLDS = ("enough", "graded", "shown")
_HISTORY = TypeAdapter(tuple[Earlier, ...])
_Form: TypeAlias = dict[str, str]


def router(desk: Desk, runner: Runner) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=500_000, page=True, include_in_schema=False)

    @endpoints.get(_PATH)
    def show_playground(
        chat: Annotated[str, Query(max_length=32)] = "", after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0
    ) -> Response:
        """Show the page, to go on from an answer of a chat if it is given."""
        return _page(desk, {}, _of_chat(chat, after) if chat else ())

    @endpoints.post(_PATH)
    async def play(request: Request) -> Response:
        form = {name: value for name, value in (await request.form()).items() if isinstance(value, str)}
        try:
            history = _history(form)
            if "back" in form:
                return _page(desk, {**form, "question": _branch(history, form)}, history[: _place(form)])
            asked = _asked(form, history)
            tried = await try_out(runner, asked)
        except OporaError as refused:
            return _page(desk, form, (), refused)
        first = tried[0].answer
        options = first.clarification.options if first.clarification else ()
        newest = Earlier(question=asked.question, outcome=first.outcome, options=options)
        return _page(desk, {**form, "question": ""}, (*history, newest)[-MOST_EXCHANGES:], asked=asked, tried=tried)

    return endpoints


def _page(
    desk: Desk,
    form: _Form,
    history: tuple[Earlier, ...],
    refused: OporaError | None = None,
    *,
    asked: PlaygroundRequest | None = None,
    tried: tuple[Tried, ...] = (),
) -> Response:
    return desk.page(
        "insight/playground.html",
        refused,
        section="insight",
        tab="playground",
        form=form,
        history=history,
        packed=_HISTORY.dump_json(history).decode(),
        asked=asked,
        tried=[(one, chat_view.passages(one.answer)) for one in tried],
        profiles=desk.settings.profiles,
        qualities=tuple(PASSES),
        sides=_SIDES,
        thresholds=_THRESHOLDS,
        limit=QUESTION_LIMIT,
    )


def _asked(form: _Form, history: tuple[Earlier, ...]) -> PlaygroundRequest:
    sides = _SIDES if form.get("both") else _SIDES[:1]
    fields = ("profile", "quality", *_THRESHOLDS)
    given = [{name: value for name in fields if (value := form.get(f"{side}_{name}", ""))} for side in sides]
    question = form.get("question", "").replace("\0", " ").strip()
    with refused_as("playground_invalid", limit=QUESTION_LIMIT):
        trials = tuple(Trial.model_validate(one) for one in given)
        return PlaygroundRequest(question=question, history=history, trials=trials)


def _history(form: _Form) -> tuple[Earlier, ...]:
    with refused_as("playground_invalid", limit=QUESTION_LIMIT):
        return _HISTORY.validate_json(form.get("history") or "[]")[-MOST_EXCHANGES:]


def _of_chat(chat_id: str, after: int) -> tuple[Earlier, ...]:
    said = thread.history(store.recent(store.get(chat_id).chat_id), before=after + 1)
    return tuple(
        Earlier(question=one.question[:QUESTION_LIMIT], outcome=one.outcome, options=one.options)
        for one in said
        if one.question
    )


def _place(form: _Form) -> int:
    back = form.get("back", "")
    return int(back) if back.isascii() and back.isdigit() and len(back) < 4 else 0


def _branch(history: tuple[Earlier, ...], form: _Form) -> str:
    place = _place(form)
    return history[place].question if place < len(history) else ""

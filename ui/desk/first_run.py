"""First run in the browser: from the link that `opora serve` prints to a tenant, its admin and the widget."""

import asyncio
from threading import Lock
from typing import Annotated, TypeAlias
from uuid import uuid4

from fastapi import Form, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from components.language.personal import without_masks
from components.language.texts import LOCALES
from pipelines import desk_gate, problems
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.connections import limited_as, public_url
from pipelines.routes import OpenRouter, opens
from tenants.accounts import registry
from tenants.audit import search
from tenants.audit.search import TurnQuery
from tenants.chats import sites
from tenants.core.errors import Invalid, OporaError
from tenants.desk import evaluation_results, first_run, operators
from tenants.knowledge import catalogue
from tenants.work import jobs
from ui.desk import chat_view, job
from ui.desk.rendering import Desk, back_to, or_again
from ui.passwords import Passwords

_LINK = "/desk/first-run/{secret}"
_WELCOME = "/desk/welcome"
_Field: TypeAlias = Annotated[str, Field(max_length=500)]
_Short: TypeAlias = Annotated[str, Form(max_length=500)]


class FirstRunForm(BaseModel):
    tenant_id: _Field = ""
    tenant_name: _Field = ""
    locale: _Field = LOCALES[0]
    origin: _Field = ""
    login: _Field = ""
    name: _Field = ""
    password: _Field = ""


def router(desk: Desk, runner: Runner, passwords: Passwords) -> OpenRouter:
    endpoints = OpenRouter("admin", limit=20_000, page=True, include_in_schema=False)
    adding = Lock()

    def first(secret: str, refused: OporaError | None = None, form: FirstRunForm | None = None) -> Response:
        least = operators.MIN_PASSWORD
        return desk.public("first_run.html", refused, secret=secret, locales=LOCALES, least=least, given=form)

    @endpoints.get(_LINK)
    @opens(scope=None)
    def show_first_run(secret: str) -> Response:
        first_run.check(secret)
        return first(secret)

    @endpoints.post(_LINK)
    @opens(scope=None)
    @or_again(lambda refused, secret, form, **_: first(secret, refused, form), Invalid)
    async def set_up(request: Request, secret: str, form: Annotated[FirstRunForm, Form()]) -> Response:
        def begin() -> Response:
            locale = form.locale if form.locale in LOCALES else LOCALES[0]
            admin = first_run.set_up(secret, **form.model_dump(exclude={"locale"}), locale=locale)
            return desk_gate.signed_in(back_to(_WELCOME), request, admin)

        return await passwords.sign_in(limited_as(request), begin)

    def steps(refused: OporaError | None = None, **values: object) -> Response:
        """Return the page with the next steps. Each step shows whether it is done, so that the admin can leave and come
        back.
        """
        known, latest = sites.own(), jobs.latest(limit=1)
        shown: dict[str, object] = {"asked": "", "turn": None, "origin": None, "is_masked": False}
        if "turn" not in values:
            shown |= _earlier()
        return desk.page(
            "welcome.html",
            refused,
            section="",
            view=job.view(latest[0]) if latest else None,
            documents=catalogue.page(catalogue.EVERYTHING, limit=1).total,
            site=known[0] if known else None,
            measured=any(one.state == "done" for one in evaluation_results.latest()),
            people=len(operators.all()),
            address=public_url(),
            limit=desk.settings.max_files_bytes,
            passages=chat_view.passages,
            **{**shown, **values},
        )

    @endpoints.get(_WELCOME)
    def welcome() -> Response:
        return steps()

    @endpoints.post(f"{_WELCOME}/ask")
    async def ask(question: Annotated[str, Form(max_length=10_000)] = "") -> Response:
        try:
            asked = problems.checked(AskRequest, question=question)
            turn = await runner.answer(asked, str(uuid4()), None)
        except OporaError as refused:
            return await asyncio.to_thread(steps, refused, asked=question, turn=None)
        return await asyncio.to_thread(steps, asked=asked.question, turn=turn)

    @endpoints.post(f"{_WELCOME}/site")
    @or_again(lambda refused, origin, **_: steps(refused, origin=origin), Invalid)
    def add_origin(key: _Short = "", origin: _Short = "") -> Response:
        """Let the site with the widget run at another address, or add the first site of a tenant that has no site."""
        with adding:  # A double click finds the site that its first half has added.
            if not key and not sites.own():
                sites.add(registry.current().name, [origin])
            else:
                site = sites.get(key.replace("\0", "")) if key else sites.own()[0]
                sites.update(site.key, origins=list(dict.fromkeys([*site.origins, sites.checked_origin(origin)])))
        return back_to(f"{_WELCOME}#widget")

    return endpoints


def _earlier() -> dict[str, object]:
    for record in search.find(TurnQuery(outcome="answered"), limit=1):
        turn = chat_view.parsed_turn((record.content or {}).get("answer"))
        is_masked = turn is not None and without_masks(turn.answer.text) != turn.answer.text
        return {"asked": record.question or "", "turn": turn, "is_masked": is_masked}
    return {}

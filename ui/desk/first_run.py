"""First run in the browser: from the link that `opora serve` prints to a tenant, its admin and the widget."""

import asyncio
from typing import Annotated, TypeAlias
from uuid import uuid4

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import Response

from components.language.texts import LOCALES
from pipelines import pages, problems
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.connections import public_url
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.audit.search import TurnQuery
from tenants.chats import sites
from tenants.core.errors import Invalid, OporaError
from tenants.desk import evaluation_results, first_run, operators
from tenants.knowledge import catalogue
from tenants.work import jobs
from ui.desk import conversation, job
from ui.desk.view import Desk, back_to, or_again

_LINK = "/desk/first-run/{secret}"
_WELCOME = "/desk/welcome"
_FORM_BYTES = 20_000
_Short: TypeAlias = Annotated[str, Form(max_length=500)]


def router(desk: Desk, runner: Runner) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter("admin", limit=_FORM_BYTES, page=True, include_in_schema=False)

    @endpoints.get(_LINK)
    @opens(scope=None)
    def show_first_run(secret: str) -> Response:
        first_run.check(secret)
        return desk.public("first_run.html", secret=secret, locales=LOCALES, least=operators.MIN_PASSWORD)

    @endpoints.post(_LINK)
    @opens(scope=None)
    async def set_up(
        request: Request,
        secret: str,
        tenant_id: _Short = "",
        tenant_name: _Short = "",
        locale: _Short = LOCALES[0],
        origin: _Short = "",
        login: _Short = "",
        name: _Short = "",
        password: _Short = "",
    ) -> Response:
        given = {"tenant_id": tenant_id, "tenant_name": tenant_name, "origin": origin, "login": login, "name": name}

        def make() -> Response:
            try:
                chosen = locale if locale in LOCALES else LOCALES[0]
                admin = first_run.set_up(secret, **given, locale=chosen, password=password)
            except Invalid as refused:
                fault = problems.detail(refused)
                return desk.public(
                    "first_run.html",
                    422,
                    secret=secret,
                    locales=LOCALES,
                    least=operators.MIN_PASSWORD,
                    given=given,
                    chosen=locale,
                    fault=fault,
                )
            return pages.signed_in(back_to(_WELCOME), request, admin)

        return await asyncio.to_thread(make)

    def steps(request: Request, status: int = 200, **values: object) -> Response:
        """Return the page with the next steps. Each step shows whether it is done, so that the admin can leave and come
        back.
        """
        known, latest = sites.own(), jobs.latest(limit=1)
        shown: dict[str, object] = {"asked": "", "turn": None, "ask_fault": "", "site_fault": "", "origin": ""}
        if "turn" not in values:
            shown |= _earlier()
        return desk.page(
            "welcome.html",
            status,
            section="",
            view=job.view(latest[0]) if latest else None,
            documents=catalogue.page(catalogue.EVERYTHING, limit=1).total,
            site=known[0] if known else None,
            measured=any(one.state == "done" for one in evaluation_results.latest()),
            people=len(operators.all()),
            address=public_url(request),
            limit=desk.settings.max_files_bytes,
            passages=conversation.passages,
            **{**shown, **values},
        )

    @endpoints.get(_WELCOME)
    def welcome(request: Request) -> Response:
        """List the next steps: load documents, ask, show the widget, measure the answers, invite people."""
        return steps(request)

    @endpoints.post(f"{_WELCOME}/ask")
    async def ask(request: Request, question: Annotated[str, Form(max_length=10_000)] = "") -> Response:
        """Ask as a customer would, and see the sources of the answer."""
        try:
            asked = AskRequest(question=question)
            turn = await runner.answer(asked, str(uuid4()), None)
        except ValidationError as unfit:
            fault = problems.detail(problems.from_validation(unfit))
            return await asyncio.to_thread(steps, request, 422, asked=question, turn=None, ask_fault=fault)
        except OporaError as refused:
            fault = problems.detail(refused)
            return await asyncio.to_thread(steps, request, refused.status, asked=question, turn=None, ask_fault=fault)
        return await asyncio.to_thread(steps, request, asked=asked.question, turn=turn)

    def refused_origin(refused: OporaError, request: Request, key: str, origin: str) -> Response:  # noqa: ARG001
        return steps(request, refused.status, site_fault=problems.detail(refused), origin=origin)

    @endpoints.post(f"{_WELCOME}/site")
    @or_again(refused_origin, Invalid)
    def set_origin(request: Request, key: _Short = "", origin: _Short = "") -> Response:  # noqa: ARG001 - shown again
        """Enter the site of the widget."""
        site = sites.get(key.replace("\0", ""))
        named = sites.checked_origin(origin)
        sites.update(site.key, origins=list(dict.fromkeys([*site.origins, named])))
        return back_to(f"{_WELCOME}#widget")

    return endpoints


def _earlier() -> dict[str, object]:
    """Return the last answered question with its answer."""
    for record in search.find(TurnQuery(outcome="answered"), limit=1):
        turn = conversation.parsed_turn((record.content or {}).get("answer"))
        return {"asked": record.question or "", "turn": turn}
    return {}

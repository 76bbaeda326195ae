"""The first run in the browser: from the link that `opora serve` prints to a tenant, its admin and the widget."""

import asyncio
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from components.language.texts import LOCALES
from pipelines import pages, problems
from pipelines.ask.desk.view import Desk, back_to
from pipelines.connections import address_of
from pipelines.gate import Route
from tenants import context
from tenants.chats import sites
from tenants.desk import first_run, sessions
from tenants.errors import Invalid

_LINK = "/desk/first-run/{secret}"
_WELCOME = "/desk/welcome"
_FORM_BYTES = 20_000
_Short: TypeAlias = Annotated[str, Form(max_length=500)]

ROUTES = (
    Route("GET", _LINK, page=True),
    Route("POST", _LINK, page=True, limit=_FORM_BYTES),
    Route("GET", _WELCOME, scope="admin", page=True),
)


def router(desk: Desk) -> APIRouter:
    """The pages."""
    endpoints = APIRouter(include_in_schema=False)

    @endpoints.get(_LINK)
    def show_first_run(secret: str) -> Response:
        first_run.check(secret)
        return desk.public("first_run.html", secret=secret, locales=LOCALES)

    @endpoints.post(_LINK)
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
                fault = problems.explained(refused)[1]
                return desk.public(
                    "first_run.html", 422, secret=secret, locales=LOCALES, given=given, chosen=locale, fault=fault
                )
            address = address_of(request)
            begun = sessions.begin(admin, address=address, browser=request.headers.get("user-agent", ""))
            return pages.with_session(back_to(_WELCOME), begun)

        return await asyncio.to_thread(make)

    @endpoints.get(_WELCOME)
    def welcome(request: Request) -> Response:
        """What to do next: load documents, ask, show the widget."""
        known = sites.own()
        return desk.page(
            "welcome.html",
            tenant_id=context.current().tenant_id,
            site=known[0] if known else None,
            address=str(request.base_url).rstrip("/"),
        )

    return endpoints

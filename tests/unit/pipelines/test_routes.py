from typing import Annotated

import pytest
from fastapi import APIRouter, Form
from pydantic import BaseModel

from pipelines.routes import OpenRouter, Route, opens


class Body(BaseModel):
    name: str


def test_an_endpoint_opens_as_its_router_says_or_otherwise() -> None:
    endpoints = OpenRouter("admin", limit=1_000, desk=True)

    @endpoints.get("/things")
    @opens(scope="operate", desk=False, per_minute=5)
    def read() -> None: ...

    @endpoints.put("/things/{name}")
    def write(name: str, body: Body) -> None: ...

    @endpoints.post("/things/{name}/stop")
    def stop(name: str) -> None: ...

    assert endpoints.open == [
        Route("GET", "/things", "operate", takes_turns=True, per_minute=5),
        Route("PUT", "/things/{name}", "admin", desk=True, takes_turns=True, body=Body, limit=1_000),
        Route("POST", "/things/{name}/stop", "admin", desk=True, takes_turns=True),
    ]


def test_only_forms_of_pages_have_a_body() -> None:
    pages = OpenRouter("operate", limit=2_000, page=True)

    @pages.get("/page")
    def show() -> None: ...

    @pages.post("/page")
    def save(name: Annotated[str, Form()]) -> None: ...

    assert pages.open == [
        Route("GET", "/page", "operate", page=True, takes_turns=True),
        Route("POST", "/page", "operate", page=True, takes_turns=True, limit=2_000),
    ]


def test_included_routes_stay_open_and_need_a_scope() -> None:
    outer, inner = OpenRouter("admin"), OpenRouter(None)
    inner.add_api_route("/healthz", lambda: None, methods=["GET"])
    outer.include_router(inner)
    assert outer.open == [Route("GET", "/healthz", takes_turns=True)]
    with pytest.raises(TypeError):
        outer.include_router(APIRouter())

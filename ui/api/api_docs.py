"""`/openapi.json` and `/docs`: the open routes, described for integrators. Served without requests to other hosts."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from fastapi import FastAPI, Header
from fastapi.openapi.utils import get_openapi
from jinja2 import Environment, FileSystemLoader
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse, JSONResponse, Response

from pipelines import problems
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ingest.contract import IngestRequest
from pipelines.routes import OpenRouter, Route
from ui.api import mcp_tool
from ui.pages import Asset, sent

_LIMITED = {f"/chats/{{chat_id}}/{act}" for act in ("messages", "edit", "regenerate")}
"""Rate-limited routes, besides questions, streams and routes without a token."""

_REFS = "#/components/schemas/{model}"
_SECURITY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_CACHE = "no-cache"
_DESCRIPTION = "Answers from a company's knowledge base, cited and checked."

Json: TypeAlias = dict[str, Any]  # A decoded JSON document.


class ProblemField(BaseModel):
    """An error in one field."""

    field: str
    code: str


class Problem(BaseModel):
    """Error as a problem object (RFC 9457). `code` is stable; the texts are in the caller's language."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    retryable: bool
    request_id: str
    turn_id: str | None
    errors: list[ProblemField] | None = None


class ApiDocs:
    def __init__(self, app: FastAPI, routes: Sequence[Route]) -> None:
        self._app, self._open = app, routes

    def router(self) -> OpenRouter:
        """Return the endpoints. Plain functions, so that FastAPI builds the document in a thread, once."""
        endpoints = OpenRouter(None, tags=["documentation"])

        @endpoints.get("/openapi.json")
        def describe(
            accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
        ) -> Response:
            """Return the OpenAPI description of this API."""
            return sent(self._json, "application/json", _CACHE, accept_encoding, if_none_match)

        @endpoints.get("/docs", response_class=HTMLResponse)
        def show(
            accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
        ) -> Response:
            """Return the description as a web page."""
            page = sent(self._html, "text/html", _CACHE, accept_encoding, if_none_match)
            page.headers["Content-Security-Policy"] = _SECURITY
            return page

        return endpoints

    @cached_property
    def _json(self) -> Asset:
        return Asset.from_body(bytes(JSONResponse(self.document).body))

    @cached_property
    def _html(self) -> Asset:
        environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
        template = environment.get_template("api_docs.html")
        return Asset.from_body(template.render(document=self.document, media_type=problems.MEDIA_TYPE).encode())

    @cached_property
    def document(self) -> Json:
        document = get_openapi(
            title="Opora", version=version("opora"), description=_DESCRIPTION, routes=self._app.router.routes
        )
        document["paths"][mcp_tool.PATH] = {"post": _MCP}
        paths: Json = {}
        described = {(route.method.lower(), _plain(route.path)): route for route in self._open if not is_desk(route)}
        for (method, path), route in sorted(described.items(), key=lambda item: item[0][1]):
            operation = document["paths"][path][method] | _CORRECTIONS.get((method, path), {})
            paths.setdefault(path, {})[method] = _completed(operation, route)
        models: list[tuple[type[BaseModel], Any]] = [(model, "serialization") for model in (Problem, TurnAnswer)]
        models += [(AskRequest, "validation"), (IngestRequest, "validation")]
        schemas = document["components"]["schemas"] | models_json_schema(models, ref_template=_REFS)[1]["$defs"]
        document["paths"] = paths
        document["components"] = {
            "schemas": _reachable(schemas, {"paths": paths, "problem": Problem.__name__}),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        }
        return document


def is_desk(route: Route) -> bool:
    """Return whether the path belongs to the desk's own pages, which are not part of the public API."""
    return route.page or route.path.startswith("/desk/assets/")


def _completed(operation: Json, route: Route) -> Json:
    statuses = ["500"]
    if route.scope is not None:
        statuses += ["401", "403", "404", "422", "503"]
    if route.limit:
        statuses += ["400", "413", "415"]
    if route.scope == "ask":
        statuses += ["429", "504"]
    if route.path in _LIMITED or route.follows or (route.scope is None and not route.probe):
        statuses.append("429")
    if route.path.startswith(("/chats/", "/desk/")) and route.method == "POST":
        statuses.append("409")
    problem = {"application/problem+json": {"schema": {"$ref": _REFS.format(model=Problem.__name__)}}}
    responses = {status: answer for status, answer in operation["responses"].items() if status < "400"}
    responses |= {status: {"description": "Problem", "content": problem} for status in sorted(statuses)}
    return operation | {"responses": responses, "security": [{"bearer": [route.scope]}] if route.scope else []}


def _reachable(schemas: Json, document: object) -> Json:
    pending, reached = [Problem.__name__, *_references(document)], set[str]()
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += _references(schemas[name])
    return {name: schemas[name] for name in sorted(reached)}


def _references(part: object) -> list[str]:
    return re.findall(r"'#/components/schemas/([^']+)'", str(part))


def _plain(path: str) -> str:
    """Convert a path to OpenAPI notation: `{name:path}` becomes `{name}`."""
    return re.sub(r":\w+}", "}", path)


def _body(model: type[BaseModel]) -> Json:
    return {"required": True, "content": {"application/json": {"schema": {"$ref": _REFS.format(model=model.__name__)}}}}


def _ok(description: str, content: Mapping[str, object]) -> Json:
    return {"200": {"description": description, "content": content}}


_TURN = {"schema": {"$ref": _REFS.format(model=TurnAnswer.__name__)}}
_CHAT = {"schema": {"$ref": _REFS.format(model="ChatCompletion")}}
_OBJECT = {"schema": {"type": "object"}}
_CHUNKS = {"itemSchema": {"type": "object", "properties": {"data": {"description": "A chunk as JSON, or `[DONE]`."}}}}
_CORRECTIONS: Mapping[tuple[str, str], Json] = {
    # Hayhooks derives models from the wrappers' signatures; these are the models that the gate validates.
    ("post", "/ask/run"): {
        "tags": ["ask"],
        "requestBody": _body(AskRequest),
        "responses": _ok("The turn, whatever its outcome.", {"application/json": _TURN}),
    },
    ("post", "/ingest/run"): {
        "tags": ["documents"],
        "requestBody": _body(IngestRequest),
        "responses": _ok("What changed.", {"application/json": _OBJECT}),
    },
    ("post", "/v1/chat/completions"): {
        "description": "The user's last message is the question, and the earlier messages are the conversation. "
        "`opora` in the response contains the whole turn. The `model` of the request must be `ask`.",
        "responses": _ok("The completion, or its chunks.", {"application/json": _CHAT, "text/event-stream": _CHUNKS}),
    },
}
_MCP: Json = {
    "tags": ["ask"],
    "summary": "Model Context Protocol",
    "description": "The tool `ask` for agents, by the streamable HTTP transport, without sessions.",
    "operationId": "mcp",
    "requestBody": {"required": True, "content": {"application/json": _OBJECT}},
    "responses": _ok("A JSON-RPC response.", {"application/json": _OBJECT}),
}

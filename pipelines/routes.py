"""Open routes: who may call an endpoint and how large a body it takes. Declared at the endpoint, checked by the gate.

endpoints = OpenRouter("admin", limit=10_000, tags=["sites"])

@endpoints.get("/sites")
@opens(scope="operate")
def list_sites() -> SitesAnswer: ...
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, TypeVar

from fastapi import APIRouter
from fastapi.routing import APIRoute
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel
from starlette.routing import compile_path

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_CHANGES = "__opens__"


@dataclass(frozen=True, slots=True)
class Shares:
    """Factors of `Route.per_minute` for one visitor, for one address and for one site; 0: unlimited."""

    visitor: int = 1
    address: int = 10
    site: int = 100


@dataclass(frozen=True, slots=True)
class Route:
    """An open route. `scope` None: no token needed. `limit` is the largest body in bytes.

    `per_minute` limits the requests of a visitor (0: unlimited); addresses and sites have a multiple, see `Shares`.

    `visitors` opens it to the tokens of visitors, too, whatever its scope; `desk` to an operator who has signed in to
    the desk. A `page` is for browsers: tokens do not open it, and its errors are pages. `files`: its form brings files,
    which the application reads as they come. `takes_turns`: few requests of a tenant are at work at once, or of an
    address if it needs no token, see `Reads`. Every endpoint that occupies a thread does, and so must a coroutine that
    reads or writes records unless a `Pool` bounds it. A `notice`, such as of typing, has separate turns: replies do not
    wait for it. A route that `follows` is a stream of events that goes on until its reader leaves: few are open at
    once, see `InProgress`. A `probe` is never made to wait: an orchestrator that gets no answer would restart a healthy
    service.

    `path` may hold templates, written as the host application writes them: `{name}` is one segment, `{name:path}`
    all the rest, neither ever empty.
    """

    method: str
    path: str
    scope: str | None = None
    visitors: bool = False
    desk: bool = False
    page: bool = False
    files: bool = False
    takes_turns: bool = False
    notice: bool = False
    follows: bool = False
    probe: bool = False
    body: type[BaseModel] | None = None
    limit: int = 0
    per_minute: int = 0


class RouteTable:
    """Exact paths cost one look-up; only an unknown path is compared to templates.

    The templates are compiled by the router of the host application, so that gate and host never disagree on a path.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._exact = {(route.method, route.path): route for route in reversed(routes) if "{" not in route.path}
        self._templates: list[tuple[re.Pattern[str], Route]] = [
            (compile_path(route.path)[0], route) for route in routes if "{" in route.path
        ]

    def find(self, method: str, path: str) -> Route | None:
        """Return the route of a request; the first listed of several templates. None if no route is open."""
        return self._exact.get((method, path)) or self._templated(method, path)

    def _templated(self, method: str, path: str) -> Route | None:
        for pattern, route in self._templates:
            if route.method == method and (match := pattern.match(path)) and all(match.groups()):
                return route
        return None


def opens(**changes: object) -> Callable[[Endpoint], Endpoint]:
    """Open an endpoint otherwise than its router does: fields of `Route`. Comes below the decorator of the path."""

    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _CHANGES, changes)
        return endpoint

    return mark


class OpenRouter(APIRouter):
    """Endpoints behind the gate. `open` lists their routes; the gate rejects requests to any other.

    :param scope: of the endpoints; None: no token needed.
    :param limit: bytes of a JSON body or of a page's form.
    :param desk, page: as in `Route`.
    """

    def __init__(
        self,
        scope: str | None,
        *,
        limit: int = 0,
        desk: bool = False,
        page: bool = False,
        **options: Any,  # noqa: ANN401 - those of FastAPI
    ) -> None:
        super().__init__(**options)
        self._scope, self._limit, self._desk, self._page = scope, limit, desk, page
        self.open: list[Route] = []

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401
        super().add_api_route(path, endpoint, **options)
        route = self.routes[-1]
        assert isinstance(route, APIRoute)  # noqa: S101 - narrows the type
        for method in sorted(route.methods or ()):
            access: dict[str, Any] = {"scope": self._scope, "desk": self._desk, "page": self._page}
            access["takes_turns"] = not (iscoroutinefunction(endpoint) or isasyncgenfunction(endpoint))
            access["follows"] = method == "GET" and route.response_class is EventSourceResponse
            if self._page:
                access["limit"] = self._limit if method != "GET" else 0
            elif route.body_field is not None:
                access |= {"limit": self._limit, "body": route.body_field.field_info.annotation}
            self.open.append(Route(method, path, **access | getattr(endpoint, _CHANGES, {})))

    def include_router(self, router: APIRouter, **options: Any) -> None:  # noqa: ANN401
        if not isinstance(router, OpenRouter):
            raise TypeError("an endpoint without a scope: use OpenRouter")
        super().include_router(router, **options)
        self.open += router.open

"""Access to routes by role. The list comes from the application, so a new route without a case fails here."""

import re
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import get_args

import httpx
import pytest
from fastapi.routing import APIRoute, APIRouter
from jsonschema import Draft202012Validator
from pydantic import SecretStr
from starlette.routing import BaseRoute, Mount, Route

import app
from pipelines.ask.chats.desk_events import DESK_CHAT_EVENT_NAMES
from pipelines.ask.chats.visitor_events import VISITOR_EVENT_NAMES
from pipelines.ask.turn_events import TurnEventName
from settings import Settings
from tests.service.desk_cases import ASSETS, PAGES
from tests.service.route_cases import CLOSED, ENDLESS, FOREIGN, GUESSES, OPEN, PROTOCOLS, SCOPED, SPARE, VISITORS
from tests.service.serving import ALL_SCOPES, problem
from ui.api.api_docs import is_desk


@pytest.fixture(scope="module")
def reachable(installation: Settings) -> set[tuple[str, str]]:
    """Return (method, path) of every route in the application, including Hayhooks'."""
    service = app.create_app(installation)
    results: set[tuple[str, str]] = set()
    for route in _all_routes(service.routes):
        assert not isinstance(route, Mount), route
        if isinstance(route, APIRoute | Route):
            results |= {(method, route.path) for method in route.methods or () if method != "HEAD"}
    plain = {_plain(path) for _, path in results}
    for path, operations in service.openapi()["paths"].items():
        if path not in plain:
            results |= {(method.upper(), path) for method in operations}
    return results


def _all_routes(routes: Sequence[BaseRoute]) -> Iterator[BaseRoute]:
    """Yield all routes, including those of included routers."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if isinstance(inner, APIRouter):
            yield from _all_routes(inner.routes)
        else:
            yield route


def _plain(path: str) -> str:
    """Return a path as OpenAPI writes it: `{name}` for `{name:path}`."""
    return re.sub(r":\w+}", "}", path)


def named(path: str, ids: dict[str, str]) -> str:
    """Fill in the templates of a path."""
    for name, value in ids.items():
        path = re.sub(rf"{{{name}(:\w+)?}}", value, path)
    assert "{" not in path, "the case of a route with a template needs an id for it"
    return path


def _send(client: httpx.Client, route: tuple[str, str], ids: dict[str, str], token: str) -> httpx.Response:
    method, path = route
    headers = {"Authorization": f"Bearer {token}"}
    case = SCOPED[route]
    if route in ENDLESS:
        with client.stream(method, named(path, ids), headers=headers) as response:
            if response.is_success:
                return httpx.Response(response.status_code, text=next(response.iter_text()))
            response.read()
            return response
    return client.request(method, named(path, ids), json=case.body, params=case.query, headers=headers)


def test_every_route_has_its_case(reachable: set[tuple[str, str]]) -> None:
    assert reachable >= OPEN | set(SCOPED)
    assert reachable - OPEN - set(SCOPED) - set(PAGES) - ASSETS <= CLOSED, (
        "a route without a case: open it in ui/api/all.py or list it as closed"
    )


def test_the_gates_route_table_matches_this_test(installation: Settings) -> None:
    routes = app.create_app(installation).state.open_routes
    table = {(route.method, route.path): route.scope for route in routes if not is_desk(route)}
    assert table == dict.fromkeys(OPEN) | {route: case.scope for route, case in SCOPED.items()}


def test_probes_are_never_paced(installation: Settings) -> None:
    installation = installation.model_copy(update={"metrics_token": SecretStr("t" * 32)})
    routes = app.create_app(installation).state.open_routes
    assert {route.path for route in routes if route.probe} == {"/healthz", "/readyz", "/metrics"}


def test_the_description_lists_exactly_the_open_routes(anybody: httpx.Client, installation: Settings) -> None:
    document = anybody.get("/openapi.json").json()
    described = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    routes = app.create_app(installation).state.open_routes
    table = {(route.method, _plain(route.path)): route for route in routes if not is_desk(route)}
    assert described == set(table)
    for method, path in described:
        operation = document["paths"][path][method.lower()]
        scope = table[method, path].scope
        assert operation["security"] == ([{"bearer": [scope]}] if scope else [])
        assert operation["description"] or operation["summary"]
        assert ("401" in operation["responses"]) is (scope is not None)
        problem_of = operation["responses"]["500"]["content"]["application/problem+json"]["schema"]
        assert problem_of == {"$ref": "#/components/schemas/Problem"}
        assert "HTTPValidationError" not in str(operation)


def test_the_description_is_valid_and_names_the_events(anybody: httpx.Client) -> None:
    document = anybody.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references == set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    streams = {
        "/ask/stream": get_args(TurnEventName),
        "/jobs/{job_id}/events": ("progress", "done"),
        "/chats/{chat_id}/events": VISITOR_EVENT_NAMES,
        "/desk/chats/{chat_id}/events": DESK_CHAT_EVENT_NAMES,
    }
    for path, events in streams.items():
        (operation,) = document["paths"][path].values()
        item = operation["responses"]["200"]["content"]["text/event-stream"]["itemSchema"]
        assert item["properties"]["event"]["enum"] == list(events)
    answers = document["paths"]["/ask/run"]["post"]["responses"]["200"]["content"]["application/json"]
    assert answers["schema"] == {"$ref": "#/components/schemas/TurnAnswer"}


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_the_description_is_sent_once(anybody: httpx.Client, path: str) -> None:
    first = anybody.get(path)
    again = anybody.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_docs_page_makes_no_external_requests(anybody: httpx.Client) -> None:
    page = anybody.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"<(script|link|img|iframe)\b|src=|url\(|@import|href=\"http", page.text)
    for _, path in SCOPED:
        assert _plain(path) in page.text


def test_a_setting_closes_the_description(installation: Settings) -> None:
    closed = app.create_app(installation.model_copy(update={"api_docs": False})).state.open_routes
    assert {("GET", "/openapi.json"), ("GET", "/docs")}.isdisjoint((route.method, route.path) for route in closed)


def test_closed_routes_return_not_found(
    anybody: httpx.Client, token: Callable[..., str], reachable: set[tuple[str, str]]
) -> None:
    closed = {*reachable, *(("GET", path) for path in GUESSES), *(("POST", path) for path in GUESSES)}
    for method, path in sorted(closed - OPEN - set(SCOPED) - set(PAGES) - ASSETS):
        for headers in ({}, {"Authorization": f"Bearer {token('acme', *ALL_SCOPES)}"}):
            named = path.replace("{pipeline_name}", "ask").replace("{model}", "ask")
            problem(anybody.request(method, named, headers=headers, json={"model": "ask"}), 404, "not_found")


def test_other_methods_do_not_exist(acme: httpx.Client) -> None:
    for _, path in SCOPED:
        # A document may be called "site".
        wider = {method for method, other in SCOPED if other != path and _covers(other, path)}
        for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "TRACE"):
            if (method, path) not in SCOPED and method not in wider:
                assert acme.request(method, named(path, SCOPED[_any_route(path)].own)).status_code == 404


def _covers(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^}]+\}", ".+", template), path) is not None


def _any_route(path: str) -> tuple[str, str]:
    return next(route for route in SCOPED if route[1] == path)


@pytest.mark.parametrize("scope", ALL_SCOPES)
def test_a_scope_opens_its_own_routes_only(
    acme: httpx.Client,
    token: Callable[..., str],
    scope: str,
    ingest: Callable[..., httpx.Response],
    subtests: pytest.Subtests,
) -> None:
    own = token("acme", scope)
    for route, case in sorted(SCOPED.items(), key=itemgetter(0)):
        with subtests.test(route=route):
            if scope == case.scope == "ingest":
                assert ingest("acme", SPARE).status_code == 200
            response = _send(acme, route, case.own, own)
            if scope == case.scope or (scope == "visit" and route in VISITORS):
                assert response.is_success or response.json()["code"] == case.may_answer, response.text
            else:
                assert case.scope in str(problem(response, 403, "scope_missing")["detail"])


@pytest.mark.parametrize("tenant_id", ["ACME", "acme ", "acme~g000001", "Acmé", "%61cme", "../acme", "acme/x"])
def test_an_id_that_resembles_a_tenant_is_unknown(
    acme: httpx.Client, token: Callable[..., str], tenant_id: str
) -> None:
    problem(_send(acme, ("POST", "/ask/run"), {}, token(tenant_id, *ALL_SCOPES)), 404, "tenant_unknown")


def test_an_unregistered_tenant_is_unknown_on_every_route(
    acme: httpx.Client, token: Callable[..., str], subtests: pytest.Subtests
) -> None:
    ghost = token("ghost", *ALL_SCOPES)
    for route in sorted(SCOPED):
        with subtests.test(route=route):
            problem(_send(acme, route, SCOPED[route].own, ghost), 404, "tenant_unknown")


def test_a_foreign_id_looks_like_a_missing_one(
    acme: httpx.Client, token: Callable[..., str], ingest: Callable[..., httpx.Response], subtests: pytest.Subtests
) -> None:
    assert ingest("globex", FOREIGN).status_code == 200
    mine = token("acme", *ALL_SCOPES)
    for route in sorted(route for route in SCOPED if "{" in route[1]):
        with subtests.test(route=route):
            case = SCOPED[route]
            assert case.foreign.keys() == case.own.keys()
            unknown = _send(acme, route, dict.fromkeys(case.foreign, "no-such-thing"), mine)
            code = str(unknown.json()["code"])
            foreign = problem(_send(acme, route, case.foreign, mine), 404, code)
            missing = problem(unknown, 404, code)
            assert {**foreign, "request_id": ""} == {**missing, "request_id": ""}


def test_somebody_elses_chat_looks_like_a_missing_one(
    acme: httpx.Client, token: Callable[..., str], subtests: pytest.Subtests
) -> None:
    stranger = token("acme", "visit", subject="maria")
    for route in sorted(route for route, case in SCOPED.items() if case.scope == "visit" and "{" in route[1]):
        with subtests.test(route=route):
            case = SCOPED[route]
            foreign = problem(_send(acme, route, case.own, stranger), 404, "chat_unknown")
            unknown = _send(acme, route, dict.fromkeys(case.own, "no-such-thing"), stranger)
            missing = problem(unknown, 404, "chat_unknown")
            assert {**foreign, "request_id": ""} == {**missing, "request_id": ""}


def test_no_body_names_a_tenant(acme: httpx.Client, token: Callable[..., str], subtests: pytest.Subtests) -> None:
    headers = {"Authorization": f"Bearer {token('acme', *ALL_SCOPES)}"}
    foreign = dict.fromkeys(
        ("tenant", "tenant_id", "collection", "collection_name", "qdrant_filter", "scope"), "globex"
    )
    for route in sorted(route for route, case in SCOPED.items() if case.body is not None):
        with subtests.test(route=route):
            case = SCOPED[route]
            body = {**(case.body or {}), **foreign}
            response = acme.request(route[0], named(route[1], case.own), json=body, headers=headers)
            if route in PROTOCOLS:
                assert response.is_success
                assert '"doc_id": "errors.md"' in response.text.replace('":"', '": "')
            else:
                errors = problem(response, 422, "unknown_field")["errors"]
                assert isinstance(errors, list)
                assert {error["field"] for error in errors} >= foreign.keys()


def test_no_header_query_or_document_id_reaches_into_another_tenant(
    acme: httpx.Client, ingest: Callable[..., httpx.Response]
) -> None:
    secret = {"doc_id": "globex-only.md", "title": "Zephyr", "text": "The zephyr valve code is ZX99. Turn it left."}
    assert ingest("globex", [secret]).status_code == 200
    for filters in (None, {"doc_ids": ["globex-only.md"]}):
        response = acme.post(
            "/ask/run?tenant=globex&tenant_id=globex",
            json={"question": "What is the zephyr valve code?", "filters": filters},
            headers={
                "X-Tenant": "globex",
                "X-Tenant-Id": "globex",
                "X-Forwarded-User": "globex",
                "Cookie": "tenant=globex",
            },
        )
        assert response.status_code == 200
        assert response.json()["outcome"] != "answered"
        assert "ZX99" not in response.text


def test_a_change_takes_turns_unless_something_else_bounds_it(installation: Settings) -> None:
    questions = {
        "/ask/run",
        "/ask/stream",
        "/ask/ui-messages",
        "/v1/chat/completions",
        "/playground",
        "/desk/playground",
        "/desk/welcome/ask",
    }
    ingestion = {"/ingest/run", "/documents", "/chats/{chat_id}/files", "/desk/documents/upload"}
    pools = {
        "/operators",
        "/operators/{login}/password",
        "/desk/account/password",
        "/desk/people/add",
        "/desk/people/password",
        "/articles/{article_id}/publish",
        "/desk/articles/{article_id}/publish",
        "/evaluation/questions",
        "/evaluation/questions/file",
        "/desk/evaluation/questions",
        "/desk/evaluation/questions/file",
        "/desk/audit/verify",
        "/tools/{name}/test",
        "/desk/settings/tools/{name}/test",
        "/desk/settings/models/test",
    }
    changes = [
        route for route in app.create_app(installation).state.open_routes if route.scope and route.method != "GET"
    ]
    assert {route.path for route in changes if not route.takes_turns} == questions | ingestion | pools

"""The gate alone, with a small application behind it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines import gate, in_progress, problems
from pipelines.connections import public_url
from pipelines.gate import Gate
from pipelines.in_progress import MOST_HELD_BYTES, MOST_OPEN
from pipelines.routes import Route
from settings import get_settings
from tenants.chats.visitors import Visitors
from tenants.core.context import Tenant, current
from tenants.core.errors import NotFound, TryAgain, Unauthenticated

LIMIT = 200


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")
    question: str


ROUTES = (
    Route("GET", "/open"),
    Route("GET", "/healthz", probe=True),
    Route("POST", "/ask/run", scope="ask", body=Body, limit=LIMIT),
    Route("POST", "/broken", scope="ask", body=Body, limit=LIMIT),
    Route("POST", "/crash", scope="ask", body=Body, limit=LIMIT),
    Route("POST", "/large", scope="ask", limit=1_000_000),
    Route("POST", "/teapot", scope="ask", body=Body, limit=LIMIT),
    Route("POST", "/vast", scope="ask", body=Body, limit=1_000_000),
    Route("GET", "/things/exact", scope="ask"),
    Route("GET", "/things/{thing}", scope="ingest"),
    Route("GET", "/rest/{thing:path}", scope="ask"),
    Route("PATCH", "/rest/{thing:path}", scope="ingest"),
    Route("GET", "/files/{folder}/{name:path}", scope="ask"),
)


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    answer: ASGIApp
    if scope["path"] in ("/open", "/healthz"):
        answer = PlainTextResponse("open")
    elif scope["path"] == "/broken":
        answer = JSONResponse({"detail": "Pipeline execution failed: secret"}, 500)
    elif scope["path"] == "/crash":
        raise RuntimeError("secret")
    elif scope["path"] == "/teapot":
        answer = PlainTextResponse("secret", 418)
    elif scope["path"].startswith(("/things/", "/rest/", "/files/")):
        answer = PlainTextResponse(scope["path"])
    elif scope["path"] == "/hidden":
        answer = PlainTextResponse("hidden")
    else:
        message = await receive()
        answer = JSONResponse({"tenant": current().tenant_id, "got": json.loads(message["body"])})
    await answer(scope, receive, send)


def verify(raw: str) -> Tenant:
    if raw == "bad":
        raise Unauthenticated
    tenant_id, _, scopes = raw.partition(":")
    return Tenant(tenant_id, "anna", frozenset(scopes.split(",")))


async def tenant_locale() -> str:
    if current().tenant_id == "ghost":
        raise NotFound("tenant_unknown")
    return "en" if current().tenant_id == "english" else "ru"


async def drain(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["more_body"]:
        pass
    await PlainTextResponse("read")(scope, receive, send)


def gate_of(
    app: ASGIApp, most_open: int = MOST_OPEN, most_held: int = MOST_HELD_BYTES, refusals_per_minute: int = 0
) -> Gate:
    return Gate(
        app,
        routes=ROUTES,
        verify=verify,
        visitors=Visitors(get_settings()),
        tenant_locale=tenant_locale,
        locale="ru",
        page_error=problems.response,
        most_open=most_open,
        most_held=most_held,
        refusals_per_minute=refusals_per_minute,
    )


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate_of(inner)), base_url="http://opora") as client:
        yield client


def bearer(token: str = "acme:ask") -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = response.json()
    assert body["code"] == code
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert "secret" not in response.text
    return body


async def test_the_tenant_of_the_token_is_in_force_inside(client: httpx.AsyncClient) -> None:
    response = await client.post("/ask/run", json={"question": "q"}, headers=bearer("beta:ask"))
    assert response.json() == {"tenant": "beta", "got": {"question": "q"}}


@pytest.mark.parametrize(
    ("subject", "sender"),
    [("v:anonymous", "192.0.2.7"), ("u:anna", Tenant("acme", "u:anna").key())],
    ids=["anonymous", "identified"],
)
async def test_visitors_take_turns_by_what_identifies_them(
    monkeypatch: pytest.MonkeyPatch, subject: str, sender: str
) -> None:
    class Site:
        async def verify(self, _: str) -> Tenant:
            return Tenant("acme", subject, frozenset({"visit", "ask"}), site="shop")

    async def sent_by(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(current().sender)(scope, receive, send)

    monkeypatch.setattr(gate, "is_site_token", lambda token: token == "visitor")
    guarded = gate_of(sent_by)
    monkeypatch.setattr(guarded, "visitors", Site())
    transport = httpx.ASGITransport(guarded, client=("192.0.2.7", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
        for token, expected in (("visitor", sender), ("acme:ask", "")):
            response = await client.get("/things/exact", headers=bearer(token))
            assert response.text == expected


async def test_work_that_outlives_a_request_keeps_no_token_and_no_body() -> None:
    callers = list[problems.Caller]()
    addresses = list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        callers.append(problems.caller.get())
        addresses.append(public_url())
        await PlainTextResponse("")(scope, receive, send)

    transport = httpx.ASGITransport(gate_of(app))
    async with httpx.AsyncClient(transport=transport, base_url="https://help.example:8443") as client:
        response = await client.get("/things/exact", headers={"Authorization": "Bearer acme:ask"})
    assert response.status_code == 200
    assert addresses == ["https://help.example:8443"]
    assert set(callers[0].scope) <= {"type", "scheme", "server", "root_path", "headers"}
    assert "acme:ask" not in repr(callers)


async def test_an_open_route_needs_no_token(client: httpx.AsyncClient) -> None:
    assert (await client.get("/open")).text == "open"


@pytest.mark.parametrize(("method", "path"), [("GET", "/hidden"), ("GET", "/ask/run"), ("OPTIONS", "/ask/run")])
async def test_an_unlisted_route_is_not_found(client: httpx.AsyncClient, method: str, path: str) -> None:
    problem(await client.request(method, path, headers=bearer("acme:ask,admin")), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/things/exact", "ask"),
        ("GET", "/things/other", "ingest"),
        ("GET", "/things/%7Bthing%7D", "ingest"),
        ("GET", "/rest/a", "ask"),
        ("GET", "/rest/a/b/c.md", "ask"),
        ("GET", "/rest/%D0%BA%D0%BE%D0%B4%D1%8B%2FE20", "ask"),
        ("PATCH", "/rest/a/b", "ingest"),
        ("GET", "/files/a/b/c", "ask"),
    ],
)
async def test_a_template_opens_what_fits_it(client: httpx.AsyncClient, method: str, path: str, scope: str) -> None:
    response = await client.request(method, path, headers=bearer(f"acme:{scope}"))
    assert response.text == unquote(path)
    other = {"ask": "ingest", "ingest": "ask"}[scope]
    problem(await client.request(method, path, headers=bearer(f"acme:{other}")), 403, "scope_missing")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/things/"),
        ("GET", "/things/a/b"),
        ("GET", "/things/a%2Fb"),
        ("GET", "/things"),
        ("GET", "/rest/"),
        ("GET", "/rest"),
        ("GET", "/x/rest/a"),
        ("DELETE", "/rest/a"),
        ("HEAD", "/rest/a"),
        ("PATCH", "/things/a"),
        ("GET", "/files/a/"),
        ("GET", "/files//a"),
        ("GET", "/ask/run/{thing}"),
    ],
)
async def test_a_template_opens_nothing_else(client: httpx.AsyncClient, method: str, path: str) -> None:
    response = await client.request(method, path, headers=bearer("acme:ask,ingest"))
    assert response.status_code == 404
    if method != "HEAD":
        problem(response, 404, "not_found")


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic YTpi", "acme:ask"])
async def test_no_bearer_token(client: httpx.AsyncClient, value: str) -> None:
    response = await client.post("/ask/run", json={"question": "q"}, headers={"Authorization": value})
    problem(response, 401, "token_missing")
    assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_body"),
        (b"{", 400, "malformed_body"),
        (b'{"question": "\xff"}', 400, "malformed_body"),
        (b'{"question": "\\ud800"}', 400, "malformed_body"),
        (b'\xef\xbb\xbf{"question": "q"}', 400, "malformed_body"),
        ('{"question": "q"}'.encode("utf-16"), 400, "malformed_body"),
        (b"question=E20", 400, "malformed_body"),
        (b'{"question": "q"} {"question": "q"}', 400, "malformed_body"),
        (b"[" * LIMIT, 400, "malformed_body"),
        (b"[]", 422, "field_invalid"),
        (b"{}", 422, "field_missing"),
        (b'{"question": 1}', 422, "field_invalid"),
        (b'{"question": "q", "tenant_id": "beta"}', 422, "unknown_field"),
    ],
)
async def test_unreadable_bodies_are_refused(client: httpx.AsyncClient, body: bytes, status: int, code: str) -> None:
    headers = {**bearer(), "Content-Type": "application/json"}
    problem(await client.post("/ask/run", content=body, headers=headers), status, code)


async def test_the_fields_in_error_are_named(client: httpx.AsyncClient) -> None:
    response = await client.post("/ask/run", json={"question": "q", "colour": 1}, headers=bearer())
    assert problem(response, 422, "unknown_field")["errors"] == [{"field": "colour", "code": "unknown_field"}]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": ""},
        {"Content-Type": "text/plain"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=koi8-r"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
async def test_other_media_types_are_refused(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    response = await client.post("/ask/run", content=b'{"question": "q"}', headers={**bearer(), **headers})
    problem(response, 415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json", "APPLICATION/JSON", 'application/json; charset="UTF-8"'])
async def test_ways_to_write_json(client: httpx.AsyncClient, kind: str) -> None:
    response = await client.post("/ask/run", content=b'{"question": "q"}', headers={**bearer(), "Content-Type": kind})
    assert response.status_code == 200


async def test_a_body_at_and_over_the_limit(client: httpx.AsyncClient) -> None:
    def padded(size: int) -> bytes:
        return b'{"question": "' + b"q" * (size - 16) + b'"}'

    headers = {**bearer(), "Content-Type": "application/json"}
    assert (await client.post("/ask/run", content=padded(LIMIT), headers=headers)).status_code == 200
    problem(await client.post("/ask/run", content=padded(LIMIT + 1), headers=headers), 413, "body_too_large")

    async def undeclared() -> AsyncIterator[bytes]:
        for _ in range(LIMIT):
            yield b"[["

    problem(await client.post("/ask/run", content=undeclared(), headers=headers), 413, "body_too_large")


@pytest.mark.parametrize("path", ["/broken", "/crash"])
async def test_faults_further_in_are_told_by_code_alone(
    client: httpx.AsyncClient, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        problem(await client.post(path, json={"question": "q"}, headers=bearer()), 500, "internal_error")
    assert "secret" not in caplog.text


async def test_a_foreign_error_page_is_replaced(client: httpx.AsyncClient) -> None:
    problem(await client.post("/teapot", json={"question": "q"}, headers=bearer()), 500, "internal_error")


@pytest.mark.parametrize(
    ("language", "tenant", "spoken"),
    [("", "acme", "ru"), ("", "english", "en"), ("en-GB,ru;q=0.5", "acme", "en"), ("fr, ru", "english", "ru")],
)
async def test_problems_speak_the_callers_language(
    client: httpx.AsyncClient, language: str, tenant: str, spoken: str
) -> None:
    headers = {**bearer(f"{tenant}:ask"), "Accept-Language": language}
    response = await client.post("/ask/run", json={}, headers=headers)
    assert response.headers["content-language"] == spoken
    assert (
        problem(response, 422, "field_missing")["title"]
        == {"ru": "Не хватает поля", "en": "A field is missing"}[spoken]
    )


async def test_the_log_names_routes_and_codes_and_nothing_a_caller_wrote(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await client.post("/ask/run?q=canary1", json={"question": "canary2"}, headers=bearer("acme:ask"))
        await client.post("/canary3", json={"question": "canary4"}, headers=bearer("bad"))
        await client.post("/ask/run", json={"canary5": 1}, headers=bearer("acme:ask"))
    lines = " ".join(record.getMessage() for record in caplog.records if record.name.startswith("opora"))
    assert "POST /ask/run 200" in lines
    assert "tenant='acme'" in lines
    assert "not_found" in lines
    assert "canary" not in lines


async def test_websockets_are_closed() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await gate_of(inner)({"type": "websocket", "path": "/open", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_disconnected_client_reaches_no_route() -> None:
    sent: list[Message] = []
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"question"', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", b"Bearer acme:ask"), (b"content-type", b"application/json")]
    await gate_of(inner)({"type": "http", "method": "POST", "path": "/ask/run", "headers": headers}, receive, send)
    assert sent == []


class Reader:
    """Follows a stream of events behind the gate.

    :param takes: how many messages with events are received before the connection is stuck.
    """

    def __init__(self, events: Callable[["Reader"], AsyncIterator[ServerSentEvent]], takes: int = 1_000) -> None:
        self.messages: list[Message] = []
        self.received, self.left = asyncio.Event(), asyncio.Event()
        self._takes = takes
        app = FastAPI()

        @app.get("/things/exact", response_class=EventSourceResponse)
        async def follow() -> AsyncIterator[ServerSentEvent]:
            async for event in events(self):
                yield event

        self._gate = gate_of(app)

    async def follow(self) -> bytes:
        headers = [(b"authorization", b"Bearer acme:ask")]
        asked = {"method": "GET", "path": "/things/exact", "root_path": "", "query_string": b"", "headers": headers}
        await asyncio.wait_for(self._gate({"type": "http", **asked}, self._receive, self._send), 20)
        return b"".join(message.get("body", b"") for message in self.messages)

    async def _receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.messages.append(message)
        if message.get("body"):
            self.received.set()
            self._takes -= 1
            if not self._takes:
                await asyncio.Event().wait()


@pytest.mark.parametrize(("fault", "code"), [(TryAgain(), "unavailable"), (RuntimeError("secret"), "internal_error")])
async def test_a_stream_that_fails_ends_so_that_its_reader_comes_back(
    fault: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def events(reader: Reader) -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(raw_data="1")
        await reader.received.wait()
        raise fault

    reader = Reader(events)
    with caplog.at_level(logging.INFO):
        assert await reader.follow() == b"data: 1\n\n"
    assert reader.messages[-1] == {"type": "http.response.body"}
    assert f"tenant='acme' {code}" in caplog.text
    assert ("ERROR" in caplog.text, "ExceptionGroup" in caplog.text) == (code == "internal_error", False)


async def test_a_reader_that_leaves_in_the_middle_of_an_event_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def events(reader: Reader) -> AsyncIterator[ServerSentEvent]:
        for number in range(20):
            yield ServerSentEvent(raw_data=str(number))
            if number == 3:  # as many as are on their way: the connection is stuck
                reader.left.set()

    with caplog.at_level(logging.INFO):
        assert await Reader(events, takes=1).follow() == b"data: 0\n\n"
    assert "tenant='acme' client_disconnected" in caplog.text
    assert "ERROR" not in caplog.text


async def test_requests_without_a_token_wait_beyond_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_progress, "ANONYMOUS_RATE", 0.01)
    monkeypatch.setattr(in_progress, "ANONYMOUS_BURST", 5.0)
    gate = gate_of(inner)

    async def answered(address: str, path: str, headers: Mapping[str, str]) -> int:
        transport = httpx.ASGITransport(gate, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
            requests = [asyncio.create_task(client.get(path, headers=headers)) for _ in range(20)]
            done, pending = await asyncio.wait(requests, timeout=0.5)
            for one in pending:
                one.cancel()
            return len(done)

    assert await answered("203.0.113.1", "/open", {}) == 5
    assert await answered("203.0.113.1", "/nothing", {}) == 0
    assert await answered("203.0.113.1", "/healthz", {}) == 20
    assert await answered("203.0.113.2", "/nothing", {}) == 5
    assert await answered("203.0.113.3", "/things/exact", {"Authorization": "Bearer bad"}) == 5


async def test_requests_without_a_token_wait_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests of clients that had left filled the memory, and later ones of their address waited for minutes."""
    monkeypatch.setattr(in_progress, "ANONYMOUS_RATE", 10.0)
    monkeypatch.setattr(in_progress, "ANONYMOUS_BURST", 1.0)
    monkeypatch.setattr(in_progress, "_ANONYMOUS_PATIENCE_SECONDS", 0.3)
    transport = httpx.ASGITransport(gate_of(inner), client=("203.0.113.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client, asyncio.timeout(5):
        paths = [*["/open"] * 100, "/nothing"]
        answers = await asyncio.gather(*(client.get(path) for path in paths))
        statuses = [answer.status_code for answer in answers]
        assert set(statuses[:-1]) == {200, 429}
        assert (statuses[0], statuses[-1]) == (200, 404)
        assert (await client.get("/open")).status_code == 200

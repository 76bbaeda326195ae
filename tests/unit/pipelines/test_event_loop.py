"""No database query runs on the event loop, where a slow one would block all requests."""

import asyncio
from collections.abc import Iterator
from threading import Event

import httpx
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

import app
from components.turn import Turn
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import cache
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine, answered

QUESTION = "Что значит код E20?"
MESSAGES = [{"role": "user", "content": QUESTION, "parts": [{"type": "text", "text": QUESTION}]}]
REQUESTS: tuple[tuple[str, str, dict[str, object] | None], ...] = (
    ("POST", "/ask/run", {"question": QUESTION, "session_id": "s-1"}),
    ("POST", "/ask/stream", {"question": QUESTION}),
    ("POST", "/ask/ui-messages", {"messages": MESSAGES}),
    ("POST", "/v1/chat/completions", {"model": "ask", "messages": MESSAGES}),
    ("POST", "/v1/chat/completions", {"model": "ask", "messages": MESSAGES, "stream": True}),
    ("GET", "/v1/models", None),
    ("POST", "/feedback", {"turn_id": "t-1", "thumb": "up"}),
    ("GET", "/documents", None),
    ("GET", "/jobs", None),
    ("GET", "/jobs/none/events", None),
    ("GET", "/audit", None),
    ("GET", "/gaps", None),
    ("GET", "/edges", None),
    ("GET", "/tools", None),
    ("GET", "/index/generations", None),
    ("GET", "/readyz", None),
)


@pytest.fixture
def queries_on_the_loop(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Statements executed in a thread with a running event loop; caches are off."""
    Registry().add("acme")
    monkeypatch.setattr(cache, "FRESH_SECONDS", 0.0)
    statements: list[str] = []

    def record(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", record)
    yield statements
    event.remove(Engine, "before_cursor_execute", record)


async def test_no_request_asks_the_database_on_the_loop(installation: Settings, queries_on_the_loop: list[str]) -> None:
    service = app.create_app(installation)
    scopes = ("ask", "ingest", "operate", "admin")
    token = issue(installation, "acme", scopes=scopes, subject="anna", ttl_seconds=600)
    wrapper = service.state.pipeline_registry.get("ask")
    transport = httpx.ASGITransport(service)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://opora", headers=headers) as client:
        for method, path, body in REQUESTS:
            response = await client.request(method, path, json=body)
            assert response.status_code in (200, 404), (path, response.text)
            assert not queries_on_the_loop, path
    await asyncio.to_thread(wrapper.close)


async def test_a_turn_is_given_up_without_the_database_on_the_loop(queries_on_the_loop: list[str]) -> None:
    release = Event()

    def stall(turn: Turn) -> Turn:
        release.wait(30)
        return answered(turn)

    runner = Runner(Ask(FakeEngine(stall)), workers=1, budget=0.05)
    with acting_as(Tenant("acme", "anna", frozenset({"ask"}))):
        assert (await runner.answer(AskRequest(question="q"), "t-1", None)).refusal_reason == "timeout"
    release.set()
    await asyncio.to_thread(runner.close)
    assert not queries_on_the_loop

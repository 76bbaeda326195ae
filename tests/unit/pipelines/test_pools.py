"""Requests that compute long: they wait on the event loop, in turn by tenant, and hold no thread of other requests."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from threading import Event
from typing import TypeAlias

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines import problems
from pipelines.ask.articles import closing
from pipelines.ask.articles.closing import Closing
from pipelines.ask.articles.usecase import Articles
from pipelines.ask.evaluation import questions
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from pipelines.pools import Pool
from pipelines.routes import OpenRouter
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.core.context import Tenant, acting_as
from tenants.core.context import current as current_tenant
from tenants.core.errors import Busy, OporaError
from tenants.desk import articles
from tenants.desk.articles import Draft
from tenants.knowledge.gaps import Miss
from tests.audits import entry
from tests.clocks import everything_waits
from ui.api import articles as articles_api
from ui.api import evaluation, gap

ATTACKERS = ("mallory", "trent", "eve", "oscar")
EACH = 11
"""Requests of an attacker: together more than the threads that serve all requests."""

PATIENCE_SECONDS = 60


class TenantFromHeader:
    """Act as the tenant of a header, in place of the gate."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with acting_as(Tenant(dict(scope["headers"])[b"x-tenant"].decode(), "anna")):
            await self.app(scope, receive, send)


@pytest.fixture
def tenants(installation: Settings) -> None:
    for tenant_id in (*ATTACKERS, "acme"):
        Registry(installation).add(tenant_id)


@pytest.fixture
def go() -> Iterator[Event]:
    """Set it and every blocked request ends."""
    event = Event()
    yield event
    event.set()


@pytest.fixture
def service() -> Iterator[Articles]:
    service = Articles(Ingest())
    yield service
    service.close()


async def refused(_: object, error: Exception) -> Response:
    assert isinstance(error, OporaError)
    return problems.response(error)


Request: TypeAlias = tuple[str, str, object]
CLOSING: Request = "PATCH", "/gaps/g", {"status": "closed"}


async def beside_a_crowd(
    *routers: OpenRouter, crowd_sends: Request, own: Request, listed: str, go: Event
) -> Counter[str]:
    """Send a request of acme, and list, while four tenants have eleven requests each at work. Return the statuses."""
    app = FastAPI(exception_handlers={OporaError: refused})
    for router in routers:
        app.include_router(router)
    async with httpx.AsyncClient(transport=ASGITransport(TenantFromHeader(app)), base_url="http://test") as client:

        def send(tenant_id: str, request: Request) -> "asyncio.Task[httpx.Response]":
            method, path, body = request
            return asyncio.create_task(client.request(method, path, json=body, headers={"x-tenant": tenant_id}))

        crowd = [send(tenant_id, crowd_sends) for tenant_id in ATTACKERS for _ in range(EACH)]
        await everything_waits()
        waiting = send("acme", own)
        listing = client.get(listed, headers={"x-tenant": "acme"})
        statuses = Counter([f"list {(await asyncio.wait_for(listing, PATIENCE_SECONDS)).status_code}"])
        go.set()
        statuses[f"acme {(await waiting).status_code}"] += 1
        statuses.update([f"crowd {(await one).status_code}" for one in crowd])
    return statuses


async def test_questions_wait_for_the_index_in_turn(tenants: None, go: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    class Index:
        def scan(self) -> Iterator[object]:
            assert go.wait(PATIENCE_SECONDS)
            yield from ()

    monkeypatch.setattr(questions, "open_collection", Index)
    body = {"questions": [{"question": "Где?", "article": "нет такой статьи"}]}
    evaluations = Evaluation(Ask())
    add: Request = "POST", "/evaluation/questions", body
    statuses = await beside_a_crowd(
        evaluation.router(evaluations), crowd_sends=add, own=add, listed="/evaluation/results", go=go
    )
    assert statuses == {"list 200": 1, "acme 422": 1, "crowd 422": len(ATTACKERS) * EACH}
    evaluations.close()


async def test_closings_of_gaps_wait_in_turn(
    tenants: None, service: Articles, go: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> Closing:
        assert current_tenant().tenant_id == "acme" or go.wait(PATIENCE_SECONDS)
        return Closing((), ())

    monkeypatch.setattr(closing, "close", asked)
    statuses = await beside_a_crowd(gap.router(service), crowd_sends=CLOSING, own=CLOSING, listed="/gaps", go=go)
    assert statuses == {"list 200": 1, "acme 409": 1, "crowd 409": len(ATTACKERS) * EACH}


async def test_publication_asks_its_gaps_beside_a_crowd(
    tenants: None, service: Articles, go: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publication left its gaps open, and said nothing, when many closings waited."""
    asked: list[str] = []

    def close(*_: object) -> Closing:
        asked.append(current_tenant().tenant_id)
        assert current_tenant().tenant_id == "acme" or go.wait(PATIENCE_SECONDS)
        return Closing((), ())

    monkeypatch.setattr(closing, "close", close)
    missed = Miss("no_evidence", "Сколько стоит доставка?", "стоит доставка", ("стоит", "доставк"), ())
    with acting_as(Tenant("acme", "anna")):
        store.append([entry("turn", misses=[missed])], get_settings())
        article = articles.add(Draft("Доставка", "Доставка стоит 490 рублей."), [missed.gap_id])
    publish: Request = "POST", f"/articles/{article.article_id}/publish", {"version": 1}
    routers = gap.router(service), articles_api.router(service)
    statuses = await beside_a_crowd(*routers, crowd_sends=CLOSING, own=publish, listed="/articles", go=go)
    assert statuses == {"list 200": 1, "acme 200": 1, "crowd 409": len(ATTACKERS) * EACH}
    assert "acme" in asked


async def test_work_waits_for_a_thread_so_long(go: Event) -> None:
    pool = Pool("test", 1, turns=1, patience=0.1)
    with acting_as(Tenant("acme", "anna")):
        running = asyncio.create_task(pool.run({}, lambda: go.wait(PATIENCE_SECONDS)))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await pool.run({}, lambda: pytest.fail("it began"))
    go.set()
    assert await running
    pool.close()


async def test_work_of_a_disconnected_client_never_begins(go: Event) -> None:
    pool = Pool("test", 1, turns=1)
    with acting_as(Tenant("acme", "anna")):
        running = asyncio.create_task(pool.run({}, lambda: go.wait(PATIENCE_SECONDS)))
        left = asyncio.create_task(pool.run({}, lambda: pytest.fail("it began")))
        await everything_waits()
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
    go.set()
    assert await running
    pool.close()

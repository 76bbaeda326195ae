"""Reads of one tenant's staff and visitors leave the threads to others."""

import asyncio
import threading
import tracemalloc
from asyncio import Event, Semaphore, wait_for
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path

import httpx
import pytest
from pydantic import RootModel
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import app
from pipelines import fair_requests, in_progress
from pipelines.ask.chats import transcript
from pipelines.ask.help_centre import Found, HelpCentre
from pipelines.fair_requests import MOST_CHANGES, MOST_READS, give_up_turn
from pipelines.routes import Route, RouteTable
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.chats import store
from tenants.chats.change import changing
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tests.attack.attacking import ATTACKER, VICTIM, add_site
from tests.service.serving import in_force
from tests.turns import question_in_work
from tests.unit.pipelines.test_gate import gate_of
from ui.api import records
from ui.help import pages as help_pages

PATH = "/things/exact"


def client_of(app: ASGIApp, tenant_id: str, scope: str = "ask") -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {tenant_id}:{scope}"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gate", headers=headers)


class Slow:
    """An application whose requests compute until `go` is set."""

    def __init__(self) -> None:
        self.go, self.begun, self.computed = Event(), Semaphore(0), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.computed += 1
        self.begun.release()
        await self.go.wait()
        await PlainTextResponse("")(scope, receive, send)


async def compete(
    slow: Slow, attacker: httpx.AsyncClient, victim: httpx.AsyncClient, method: str, most: int, body: object = None
) -> list["asyncio.Task[httpx.Response]"]:
    """Send 20 requests of one tenant and one of another. Check that `most` of the first compute, and the other's."""
    clients = (*[attacker] * 20, victim)
    requests = [asyncio.create_task(client.request(method, PATH, json=body)) for client in clients]
    for _ in range(most + 1):
        await wait_for(slow.begun.acquire(), 5)
    assert slow.computed == most + 1
    return requests


@pytest.mark.parametrize("scope", ["ask", "visit"])
@pytest.mark.parametrize(("method", "most"), [("GET", MOST_READS), ("PATCH", MOST_CHANGES)])
async def test_requests_of_one_tenant_take_turns(method: str, most: int, scope: str) -> None:
    slow = Slow()
    gate = gate_of(slow)
    gate.routes = RouteTable([Route(method, PATH, scope, takes_turns=True)])
    async with client_of(gate, "mallory", scope) as attacker, client_of(gate, "acme", scope) as victim:
        requests = await compete(slow, attacker, victim, method, most)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}


@pytest.mark.parametrize(("method", "most"), [("GET", 1), ("PATCH", 2)])
async def test_few_requests_of_a_tenant_compute_beside_a_question(
    method: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.0)
    slow = Slow()
    gate = gate_of(slow)
    gate.routes = RouteTable([Route(method, PATH, "ask", takes_turns=True)])
    async with client_of(gate, "mallory") as attacker, client_of(gate, "acme") as victim:
        with question_in_work():
            requests = await compete(slow, attacker, victim, method, most)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}


@pytest.mark.parametrize(("method", "most"), [("GET", 1), ("PATCH", 2)])
async def test_few_requests_of_a_tenant_compute_beside_another(method: str, most: int) -> None:
    slow = Slow()
    gate = gate_of(slow)
    gate.routes = RouteTable([Route(method, PATH, "ask", takes_turns=True), Route("POST", "/ask", "ask")])
    async with client_of(gate, "mallory") as attacker, client_of(gate, "acme") as victim:
        asked = asyncio.create_task(victim.post("/ask"))
        await wait_for(slow.begun.acquire(), 5)
        slow.computed = 0
        requests = await compete(slow, attacker, victim, method, most)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(asked, *requests)} == {200}


async def test_pages_without_a_token_take_turns_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.0)
    slow = Slow()
    gate = gate_of(slow)
    gate.routes = RouteTable([Route("GET", PATH, takes_turns=True)])
    async with AsyncExitStack() as stack:
        flood, other = [
            await stack.enter_async_context(
                httpx.AsyncClient(transport=httpx.ASGITransport(gate, client=(address, 1)), base_url="http://gate")
            )
            for address in ("192.0.2.1", "192.0.2.2")
        ]
        with question_in_work():
            requests = await compete(slow, flood, other, "GET", most=1)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}


async def test_a_tenant_makes_one_large_change_at_a_time() -> None:
    slow = Slow()
    gate = gate_of(slow)
    gate.routes = RouteTable([Route("PATCH", PATH, "ask", takes_turns=True, body=RootModel[str], limit=100_000)])
    async with client_of(gate, "mallory") as attacker, client_of(gate, "acme") as victim:
        requests = await compete(slow, attacker, victim, "PATCH", 1, "x" * 80_000)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}


async def test_a_request_that_goes_on_in_a_pool_holds_no_turn() -> None:
    slow = Slow()

    async def pooled(scope: Scope, receive: Receive, send: Send) -> None:
        give_up_turn()
        await slow(scope, receive, send)

    gate = gate_of(pooled)
    gate.routes = RouteTable([Route("PATCH", PATH, "ask", takes_turns=True)])
    async with client_of(gate, "mallory") as client:
        requests = [asyncio.create_task(client.patch(PATH)) for _ in range(MOST_CHANGES + 1)]
        for _ in requests:
            await wait_for(slow.begun.acquire(), 5)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}


async def test_short_pages_beside_another_tenant_follow_without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_requests, "_PAUSE_SHARE", 1_000.0)
    monkeypatch.setattr(fair_requests, "_MOST_PAUSE_SECONDS", 60.0)
    turns = fair_requests.Reads()
    turns.note_request("acme")
    turns.note_request("mallory")
    for _ in range(3):
        turn = turns.turn_of("mallory")
        await wait_for(turn.begin(), 5)
        turn._began -= 0.06
        turn.end()


async def test_searches_beside_another_tenant_pause_however_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_requests, "_PAUSE_SHARE", 1_000.0)
    monkeypatch.setattr(fair_requests, "_MOST_PAUSE_SECONDS", 60.0)
    turns = fair_requests.Reads()
    turns.note_request("acme")
    turns.note_request("mallory")
    turn = turns.turn_of("mallory", is_search=True)
    await wait_for(turn.begin(), 5)
    turn._began -= 0.06
    turn.end()
    with pytest.raises(TimeoutError):
        await wait_for(turns.turn_of("mallory", is_search=True).begin(), 0.1)
    await wait_for(turns.turn_of("acme", is_search=True).begin(), 5)


async def test_a_tenant_searches_once_at_a_time_also_when_another_comes() -> None:
    turns = fair_requests.Reads()
    first = turns.turn_of("mallory", is_search=True)
    await wait_for(first.begin(), 5)
    turns.note_request("acme")
    turns.note_request("mallory")
    with pytest.raises(TimeoutError):
        await wait_for(turns.turn_of("mallory", is_search=True).begin(), 0.1)
    first.end()
    await wait_for(turns.turn_of("mallory", is_search=True).begin(), 5)


def begun_searches(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """The searches of help centres that have begun, also those that wait for a turn."""
    begun = Counter[tuple[str, str]]()

    def counted(counts: Counter[tuple[str, str]], key: tuple[str, str]) -> AbstractContextManager[None]:
        begun[key] += 1
        return in_progress.counted(counts, key)

    monkeypatch.setattr(help_pages, "counted", counted)
    return begun


async def test_searches_of_a_help_centre_take_turns(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    searched, begun, go = list[str](), begun_searches(monkeypatch), threading.Event()

    def search(_: HelpCentre, words: str) -> tuple[Found, ...]:
        searched.append(words)
        assert words == "quick" or go.wait(30)
        return ()

    monkeypatch.setattr(HelpCentre, "search", search)
    add_site(installation, ATTACKER, "site_searched")
    add_site(installation, VICTIM, "site_beside")
    with in_force(installation):
        service = app.create_app(installation)

        async def seen(path: str, address: str = "127.9.0.9") -> int:
            transport = httpx.ASGITransport(service, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
                return (await client.get(path)).status_code

        async def refusal(address: str) -> int:
            return await wait_for(seen("/help/site_searched?q=slow", address), 10)

        pending = list[asyncio.Task[int]]()
        try:
            for address in range(4):
                for _ in range(5):
                    pending.append(asyncio.create_task(seen("/help/site_searched?q=slow", f"127.9.0.{address}")))
                while not searched or begun[ATTACKER, ""] < len(pending):
                    await asyncio.sleep(0)
                if address == 0:
                    assert await refusal("127.9.0.0") == 503
            assert await refusal("127.9.0.5") == 503
            assert searched == ["slow"]
            assert await wait_for(seen("/help/site_searched"), 10) == 200
            assert await wait_for(seen("/help/site_beside?q=quick"), 10) == 200
        finally:
            go.set()
        assert set(await asyncio.gather(*pending)) == {200}


async def test_a_search_given_up_early_holds_no_turn(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 30.0)
    monkeypatch.setattr(HelpCentre, "search", lambda *_: ())
    begun = begun_searches(monkeypatch)
    add_site(installation, ATTACKER, "site_left")
    with in_force(installation):
        transport = httpx.ASGITransport(app.create_app(installation), client=("127.9.0.9", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:
            with question_in_work():
                left, waiting = (asyncio.create_task(client.get("/help/site_left?q=quick")) for _ in range(2))
                while begun[ATTACKER, ""] < 2:
                    await asyncio.sleep(0)
                left.cancel()
                await asyncio.gather(left, return_exceptions=True)
            assert (await wait_for(waiting, 10)).status_code == 200


async def test_a_verification_of_the_audit_holds_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.0)
    go = threading.Event()
    begun = Semaphore(0)
    loop = asyncio.get_running_loop()

    def verify() -> None:
        loop.call_soon_threadsafe(begun.release)
        assert go.wait(10)

    monkeypatch.setattr(search, "verify", verify)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            await records.verified()
        await PlainTextResponse("")(scope, receive, send)

    gate = gate_of(app)
    gate.routes = RouteTable([Route("GET", PATH, "ask"), Route("GET", "/audit/verify", "ask")])
    async with client_of(gate, "acme") as client:
        with question_in_work():
            verifying = asyncio.create_task(client.get("/audit/verify"))
            try:
                await wait_for(begun.acquire(), 5)
                assert (await wait_for(client.get(PATH), 5)).status_code == 200
            finally:
                go.set()
        assert (await verifying).status_code == 200


async def test_no_tenant_is_named_like_the_visitors_of_another() -> None:
    slow = Slow()
    gate = gate_of(slow)
    gate.routes = RouteTable([Route("GET", PATH, "visit"), Route("GET", f"{PATH}/own", "ask")])
    async with client_of(gate, "acme", "visit") as visitor, client_of(gate, "acme visitors") as other:
        reads = [asyncio.create_task(visitor.get(PATH)) for _ in range(MOST_READS)]
        reads.append(asyncio.create_task(other.get(f"{PATH}/own")))
        for _ in range(MOST_READS + 1):
            await wait_for(slow.begun.acquire(), 5)
        slow.go.set()
        assert {response.status_code for response in await asyncio.gather(*reads)} == {200}


async def test_reads_let_questions_go_first_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    slow.go.set()
    gate = gate_of(slow)
    async with client_of(gate, "mallory") as attacker, client_of(gate, "acme") as victim:
        monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 60.0)
        with question_in_work():
            reads = [asyncio.create_task(client.get(PATH)) for client in (*[attacker] * 10, victim)]
            done, _ = await asyncio.wait(reads, timeout=0.1)
            assert (done, slow.computed) == (set(), 0)
        assert {response.status_code for response in await wait_for(asyncio.gather(*reads), 5)} == {200}
        monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.05)
        with question_in_work():
            assert (await wait_for(victim.get(PATH), 5)).status_code == 200


async def test_a_visitors_stream_holds_its_turn_until_its_first_event() -> None:
    slow, gone = Slow(), Event()

    async def streamed(scope: Scope, receive: Receive, send: Send) -> None:
        async def events() -> AsyncIterator[str]:
            slow.begun.release()
            slow.computed += 1
            await slow.go.wait()
            yield "data: chat\n\n"
            await gone.wait()

        await StreamingResponse(events(), media_type="text/event-stream")(scope, receive, send)

    gate = gate_of(streamed)
    gate.routes = RouteTable([Route("GET", PATH, "visit")])
    async with client_of(gate, "mallory", "visit") as attacker:
        streams = [asyncio.create_task(attacker.get(PATH)) for _ in range(2 * MOST_READS)]
        for _ in range(MOST_READS):
            await wait_for(slow.begun.acquire(), 5)
        assert slow.computed == MOST_READS
        slow.go.set()
        for _ in range(MOST_READS):
            await wait_for(slow.begun.acquire(), 5)
        gone.set()
        assert {response.status_code for response in await wait_for(asyncio.gather(*streams), 5)} == {200}


async def test_a_client_that_takes_nothing_holds_no_turn() -> None:
    taken, offered = Event(), Semaphore(0)

    async def streamed(scope: Scope, receive: Receive, send: Send) -> None:
        await StreamingResponse(iter(["a", "b"]))(scope, receive, send)

    gate = gate_of(streamed)

    def request(tenant_id: str) -> Scope:
        headers = [(b"authorization", f"Bearer {tenant_id}:ask".encode())]
        return {"type": "http", "method": "GET", "path": PATH, "query_string": b"", "headers": headers}

    async def receive() -> Message:
        await Event().wait()
        return {}

    async def send_slowly(message: Message) -> None:
        offered.release()
        await taken.wait()

    stuck = [asyncio.create_task(gate(request("mallory"), receive, send_slowly)) for _ in range(2 * MOST_READS)]
    for _ in stuck:
        await wait_for(offered.acquire(), 5)
    async with client_of(gate, "mallory") as own:
        response = await wait_for(own.get(PATH), 5)
    assert response.text == "ab"
    taken.set()
    await asyncio.gather(*stuck)


def test_a_transcript_reads_no_turns(tmp_path: Path) -> None:
    with in_force(Settings(data_dir=tmp_path)), acting_as(Tenant("mallory", "anna")):
        Registry().add("mallory")
        chat = store.start()
        with changing(chat.chat_id) as change:
            change.add("customer", "file", "Что это?", body={"file": {"name": "фото.png"}})
            for _ in range(500):
                change.add("bot", "text", "Готово.", body={"turn": {"trace": "x" * 40_000}})
        tracemalloc.start()
        written = transcript.written(chat)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert "фото.png" in written
    assert written.count("Готово.") == 500
    assert peak < 10_000_000

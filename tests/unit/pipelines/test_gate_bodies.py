"""Bodies and connections at the gate: no caller holds what others need."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from pipelines import gate, problems
from pipelines.in_progress import InProgress
from pipelines.request_bodies import JsonBounds, form_without_nul, parsed
from tenants.core.errors import Invalid
from tests.unit.pipelines.test_gate import bearer, drain, gate_of, inner, problem, verify


async def test_no_tenant_holds_all_connections_open() -> None:
    go, streaming = asyncio.Event(), asyncio.Semaphore(0)

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        streaming.release()
        await go.wait()
        await inner(scope, receive, send)

    transport = httpx.ASGITransport(gate_of(stream, most_open=4))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:

        def opened(tenant_id: str) -> asyncio.Task[httpx.Response]:
            return asyncio.create_task(client.get("/things/exact", headers=bearer(f"{tenant_id}:ask")))

        greedy = [opened("acme") for _ in range(3)]
        for _ in greedy:
            await asyncio.wait_for(streaming.acquire(), 20)
        problem(await opened("acme"), 503, "busy")
        other = opened("beta")
        await asyncio.wait_for(streaming.acquire(), 20)
        go.set()
        assert [(await one).status_code for one in (*greedy, other)] == [200] * 4
        assert (await opened("acme")).is_success


async def test_bodies_without_end_are_bounded() -> None:
    """Sixty requests of one token, 10 MB each, took 600 MB of memory until they were closed."""
    go, held = asyncio.Event(), asyncio.Semaphore(0)

    async def body() -> AsyncIterator[bytes]:
        yield b'{"question": "' + b"q" * 100_000 + b'"}'
        held.release()
        await go.wait()

    transport = httpx.ASGITransport(gate_of(drain, most_held=1_065_600))
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:

        def sent(tenant_id: str) -> asyncio.Task[httpx.Response]:
            headers = {**bearer(f"{tenant_id}:ask"), "Content-Type": "application/json"}
            return asyncio.create_task(client.post("/vast", content=body(), headers=headers))

        greedy = [sent("acme") for _ in range(3)]
        for _ in greedy:
            await asyncio.wait_for(held.acquire(), 20)
        problem(await sent("acme"), 503, "busy")
        assert (await client.post("/large", content=bytes(50_000), headers=bearer())).is_success
        other = sent("beta")
        await asyncio.wait_for(held.acquire(), 20)
        go.set()
        assert [(await one).status_code for one in (*greedy, other)] == [200] * 4
        assert (await sent("acme")).is_success


async def test_a_body_that_ends_after_its_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "RECHECK_SECONDS", 0.0)
    own = gate_of(drain)

    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        monkeypatch.setattr(own, "verify", lambda _: verify("bad"))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(own), base_url="http://opora") as client:
        problem(await client.post("/large", content=body(), headers=bearer()), 401, "token_invalid")


async def test_a_large_body_that_is_kept_in_memory_counts_whatever_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MOST_HELD_BYTES", 1_000)
    held: list[int] = []
    monkeypatch.setattr(InProgress, "hold", lambda _self, _caller, size: held.append(size))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate_of(inner)), base_url="http://opora") as client:
        await client.post("/vast", json={"question": "q" * 90_000}, headers=bearer())
    assert sum(held) > 90_000


@pytest.mark.parametrize("raises", [True, False])
async def test_bodies_that_the_endpoint_refuses_count(raises: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        refused = Invalid("policy_invalid")
        if raises:
            raise refused
        await problems.response(refused)(scope, receive, send)

    own = gate_of(refuse, refusals_per_minute=2)
    transport = httpx.ASGITransport(own)
    async with httpx.AsyncClient(transport=transport, base_url="http://opora") as client:

        async def sent(tenant_id: str, size: int, subject: str = "anna") -> int:
            monkeypatch.setattr(own, "verify", lambda raw: replace(verify(raw), subject=subject))
            body = {"question": "q" * size}
            return (await client.post("/vast", json=body, headers=bearer(f"{tenant_id}:ask"))).status_code

        assert [await sent("acme", 90_000) for _ in range(3)] == [422, 422, 429]
        assert [await sent("acme", 90_000, "boris"), await sent("beta", 90_000)] == [429, 422]
        assert [await sent("acme", 10, "vera") for _ in range(3)] == [422, 422, 422]


async def test_a_large_body_has_to_arrive_at_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "GRACE_SECONDS", -100.0)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate_of(drain)), base_url="http://opora") as client:
        sent = [
            await client.post("/vast", json={"question": "q" * size}, headers=bearer()) for size in (70_000, 60_000)
        ]
    problem(sent[0], 400, "body_too_slow")
    assert sent[1].is_success


class Text(BaseModel):
    """A body."""

    text: str


@pytest.mark.parametrize(
    ("given", "taken"), [("a\0\0b", "a  b"), ("\\\0", "\\ "), ("\\u0000", "\\u0000"), ("\\\\u0000\0", "\\\\u0000 ")]
)
async def test_json_has_spaces_for_nul(given: str, taken: str) -> None:
    value, body = await parsed(Text, json.dumps({"text": given}).encode())
    assert value == json.loads(body) == {"text": taken}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("text", "values"),
    [(r'["\\", "a\\\", [,,", "\"[["]', 3), (r'{"a\\": [1, 2, 3]}', 4), (r'["\\\\", [], "\\\"{"]', 4)],
)
def test_values_are_counted_outside_strings(text: str, values: int, size: int) -> None:
    json.loads(text)
    bounds = JsonBounds(0)
    for start in range(0, len(text), size):
        bounds.feed(text[start : start + size].encode())
    assert bounds._values == values


def test_form_has_spaces_for_nul() -> None:
    assert form_without_nul(b"a=x%00y&b=\0&c=%2500") == b"a=x+y&b=+&c=%2500"

"""Many tenants at once on one process: data of one never appears at another."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from tests.service.serving import CROWD, Server

CANARY = {tenant_id: f"ZQ{number}X7{number}" for number, tenant_id in enumerate(CROWD)}
"""A code that only one tenant's documents contain."""
PLACE = {tenant_id: f"канарейка{number}{'абвгде'[number]}" for number, tenant_id in enumerate(CROWD)}


@pytest.fixture(scope="module", autouse=True)
def _knowledge(server: Server, ingest: Callable[..., httpx.Response]) -> None:
    for tenant_id in CROWD:
        document = {
            "doc_id": "service.md",
            "title": f"Сервисный код {PLACE[tenant_id]}",
            "text": f"Сервисный код прибора — {CANARY[tenant_id]}. Его сообщают мастеру {PLACE[tenant_id]}.\n",
            "owner": PLACE[tenant_id],
            "tags": [CANARY[tenant_id]],
        }
        assert ingest(tenant_id, [document]).status_code == 200


async def test_a_hundred_questions_at_once_leak_nowhere(server: Server, token: Callable[..., str]) -> None:
    headers = {tenant_id: {"Authorization": f"Bearer {token(tenant_id, 'ask')}"} for tenant_id in CROWD}
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:

        async def ask(number: int) -> tuple[str, httpx.Response]:
            tenant_id = CROWD[number % len(CROWD)]
            other = CROWD[(number // len(CROWD) + number + 1) % len(CROWD)]
            bodies: list[dict[str, object]] = [
                {"question": "Какой сервисный код прибора?"},
                {"question": f"Какой код сообщить мастеру {PLACE[other]}?"},
                {"question": "Какой сервисный код прибора?", "filters": {"tags": [CANARY[other]]}},
                {"question": "Какой сервисный код прибора?", "colour": "red"},
            ]
            return tenant_id, await client.post("/ask/run", json=bodies[number % 4], headers=headers[tenant_id])

        answers = await asyncio.gather(*(ask(number) for number in range(120)))

    own = 0
    for tenant_id, response in answers:
        assert response.status_code in (200, 422)
        mine = _found(response)
        assert mine <= {CANARY[tenant_id]}
        own += CANARY[tenant_id] in mine
    # The test can only fail if the canaries are there to be found.
    assert own >= 30


async def test_caches_are_not_shared_between_tenants(server: Server, token: Callable[..., str]) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        for tenant_id in (*CROWD, *reversed(CROWD)):
            response = await client.post(
                "/ask/run",
                json={"question": "Какой сервисный код прибора?", "session_id": "shared"},
                headers={"Authorization": f"Bearer {token(tenant_id, 'ask')}", "Idempotency-Key": "shared"},
            )
            assert _found(response) == {CANARY[tenant_id]}


def test_the_log_contains_no_questions_documents_or_tokens(
    server: Server, anybody: httpx.Client, token: Callable[..., str]
) -> None:
    raw = token(CROWD[0], "ask")
    headers = {"Authorization": f"Bearer {raw}"}
    anybody.post("/ask/run?note=канарейка", json={"question": "Где живёт канарейка?"}, headers=headers)
    anybody.post("/ask/run", json={"question": "Где живёт канарейка?", "канарейка": 1}, headers=headers)
    anybody.post("/ask/run", content="канарейка".encode(), headers={**headers, "Content-Type": "application/json"})
    anybody.get("/канарейка")
    log = "".join(server.log)
    assert "POST /ask/run 200" in log
    assert "канарейка" not in log
    assert "%D0%BA" not in log
    assert not [code for code in CANARY.values() if code in log]
    assert raw not in log
    assert raw.rsplit(".", 1)[1] not in log


def _found(response: httpx.Response) -> set[str]:
    """Return the tenants' codes in a response, except in the echo of the request."""
    body = response.json()
    if response.status_code == 200:
        body["meta"]["query"] = body["meta"]["filters"] = None
    response_text = str(body) + str(response.headers)
    return {code for code in CANARY.values() if code in response_text}

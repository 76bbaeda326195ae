"""Limits of one visitor, and of all visitors of an address."""

import tracemalloc
from functools import partial
from uuid import uuid4

import httpx
import pytest
from starlette.testclient import TestClient

import app
from evaluation.benchmarks.attacks import SHOP
from pipelines.routes import Shares
from settings import Settings
from tenants.access.quotas import RateLimiter
from tenants.access.tokens import issue
from tenants.core.context import Tenant, acting_as
from tests.attack.attacking import VICTIM, add_site, visitor_of
from tests.service.serving import ALL_SCOPES, Server, in_force, problem

TRIES = 40


def begin(visitor: httpx.Client) -> str:
    return f"/chats/{visitor.post('/chats', json={}).raise_for_status().json()['chat_id']}"


def visit(client: TestClient, site: str) -> None:
    session = client.post("/widget/sessions", json={"site": site}, headers={"Origin": SHOP}).raise_for_status()
    client.headers["Authorization"] = f"Bearer {session.json()['token']}"


@pytest.mark.parametrize(
    ("act", "most"),
    [("chats", 10), ("person", 10), ("rating", 10), ("seen", 120), ("typing", 120), ("stop", 60)],
)
def test_a_visitor_writes_so_often_a_minute(server: Server, installation: Settings, act: str, most: int) -> None:
    key = f"site_{act}"
    add_site(installation, VICTIM, key)
    with visitor_of(server, key) as visitor:
        chat = begin(visitor)
        bodies = {"rating": {"csat": 5}, "seen": {"seq": 1}, "typing": {"active": True}}
        path = "/chats" if act == "chats" else f"{chat}/{act}"
        answers = [visitor.post(path, json=bodies.get(act, {})) for _ in range(most + TRIES)]
        accepted = sum(one.is_success for one in answers)
        assert accepted == most - (act == "chats")
        problem(answers[-1], 429, "rate_limited")
        assert int(answers[-1].headers["retry-after"]) >= 1


@pytest.mark.parametrize(("part", "most"), [("", 60), ("/transcript", 10)])
def test_a_visitor_reads_a_chat_so_often_a_minute(server: Server, installation: Settings, part: str, most: int) -> None:
    key = f"site_reads_{most}"
    add_site(installation, VICTIM, key)
    with visitor_of(server, key) as visitor:
        chat = begin(visitor)
        answers = [visitor.get(f"{chat}{part}") for _ in range(most + 1)]
    assert [one.status_code for one in answers] == [200] * most + [429]


async def test_chats_that_visitors_make_up_take_no_memory(installation: Settings) -> None:
    now = 0.0
    limiter = RateLimiter(installation, lambda: now)
    tracemalloc.start()
    with acting_as(Tenant(VICTIM, "visitor")):
        for number in range(200):
            now += 1
            for part in range(10):
                await limiter.admit_each({f"messages of visitor in chat {number}-{part}-{'a' * 10_000}": 20})
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2_000_000, "20 MB were sent, of which the last minute stays"


def test_nobody_uses_up_what_others_may_write(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_used_up")
    message = {"text": "E20?", "client_id": "one"}
    with visitor_of(server, "site_used_up") as visitor, visitor_of(server, "site_used_up") as other:
        path = f"{begin(visitor)}/messages"
        for _ in range(installation.chat_messages_per_minute + 1):
            assert not other.post(path, json=message).is_success
        assert visitor.post(path, json=message).status_code == 202


def test_new_visitors_of_one_address_share_a_limit(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_crowd")
    accepted = 0
    for _ in range(12):
        with visitor_of(server, "site_crowd", "127.0.0.77") as visitor:
            accepted += sum(visitor.post("/chats", json={}).is_success for _ in range(10))
    assert accepted == 100
    with visitor_of(server, "site_crowd", "127.0.0.78") as neighbour:
        assert neighbour.post("/chats", json={}).is_success


def test_visitors_of_one_site_share_a_limit(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "Shares", partial(Shares, site=2))
    for site in ("site_shared", "site_apart"):
        add_site(installation, VICTIM, site)
    with in_force(installation), TestClient(app.create_app(installation)) as client:
        accepted = 0
        for _ in range(3):
            visit(client, "site_shared")
            accepted += sum(client.post("/chats", json={}).is_success for _ in range(10))
        assert accepted == 20
        visit(client, "site_apart")
        assert client.post("/chats", json={}).is_success


def test_a_visitor_has_one_open_ticket(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_tickets")
    token = issue(installation, VICTIM, scopes=ALL_SCOPES, subject="anna", ttl_seconds=3_600)
    with visitor_of(server, "site_tickets") as visitor, visitor_of(server, "site_tickets") as other:
        chats = [begin(visitor) for _ in range(3)]
        for chat in chats:
            visitor.post(f"{chat}/messages", json={"text": "Позовите человека", "client_id": uuid4().hex})
        tickets = [visitor.post(f"{chat}/person").json()["ticket_id"] for chat in chats]
        assert len(set(tickets)) == 1
        assert tickets[0]
        foreign = other.post(f"{begin(other)}/person").json()["ticket_id"]
        assert foreign not in tickets
        operator = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"})
        with operator:
            for chat in chats[:2]:
                assert operator.post(f"/desk{chat}/resolve", json={}).json()["ticket_id"] is None
            kept = operator.get(f"/desk{chats[2]}").json()["chat"]
            assert (kept["state"], kept["ticket_id"]) == ("queued", tickets[0])
            assert operator.post(f"/desk{chats[2]}/resolve", json={}).is_success
        again = visitor.post(f"{chats[0]}/messages", json={"text": "Ещё вопрос", "client_id": uuid4().hex})
        assert again.is_success
        assert visitor.post(f"{chats[0]}/person").json()["ticket_id"] not in tickets

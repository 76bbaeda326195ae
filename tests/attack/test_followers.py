"""Event streams: few are open at once, and those of a tenant wake and read together."""

import asyncio
from contextlib import ExitStack
from threading import Barrier, Event

import httpx
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

import app
from pipelines import gate, in_progress
from pipelines import openings as openings_module
from pipelines.ask.chats import shared_reads
from pipelines.in_progress import InProgress
from pipelines.openings import Openings
from pipelines.routes import Route
from settings import Settings
from tenants.chats import fanout
from tenants.chats.fanout import Announcement
from tenants.chats.visitors import SCOPE as VISIT
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import RateLimited, Unauthenticated
from tests.attack.attacking import ATTACKER, VICTIM
from tests.service.serving import in_force
from tests.unit.pipelines.test_gate import bearer, gate_of

STREAMS = 50
STAFF = Tenant(ATTACKER, "anna")


def opened(counts: InProgress, *callers: Tenant) -> int:
    """Return how many of the callers can have their streams open at once."""
    with ExitStack() as stack:
        for number, caller in enumerate(callers):
            try:
                stack.enter_context(counts.following(caller))
            except RateLimited:
                return number
        return len(callers)


def visitor(number: int, sender: str = "") -> Tenant:
    return Tenant(ATTACKER, f"visitor {number}", frozenset({VISIT}), "site", sender)


def test_few_streams_are_open_at_once() -> None:
    counts = InProgress()
    assert opened(counts, *[visitor(1)] * 100) == in_progress.MOST_FOLLOWED_BY_VISITOR
    same_address = [visitor(number, "203.0.113.1") for number in range(1_000)]
    assert opened(counts, *same_address) == in_progress.MOST_FOLLOWED_FROM_ADDRESS
    signed_in = [visitor(number, f"visitor {number}") for number in range(2_000)]
    assert opened(counts, *signed_in) == in_progress.MOST_FOLLOWED_BY_VISITORS
    assert opened(counts, *[STAFF] * 500) == in_progress.MOST_FOLLOWED_BY_ONE
    operators = [Tenant(ATTACKER, f"operator {number}") for number in range(1_000)]
    assert opened(counts, *operators) == in_progress.MOST_FOLLOWED
    with ExitStack() as stack:
        for one in signed_in[: in_progress.MOST_FOLLOWED_BY_VISITORS]:
            stack.enter_context(counts.following(one))
        assert opened(counts, STAFF, Tenant(VICTIM, "boris", frozenset({VISIT}))) == 2


def test_streams_that_go_on_are_declared_so(installation: Settings) -> None:
    routes = app.create_app(installation).state.open_routes
    assert {route.path for route in routes if route.follows} == {
        "/chats/{chat_id}/events",
        "/desk/chats/{chat_id}/events",
        "/desk/live",
        "/jobs/{job_id}/events",
    }


async def connected() -> Message:
    """A client that has sent its request and stays."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("crowd", ["192.0.2.{}", "2001:db8:0:{:x}::/64"])
async def test_networks_take_turns_to_open_streams(crowd: str) -> None:
    openings = Openings()
    order = list[str]()

    async def open_one(address: str) -> None:
        opening, _ = await openings.admit(address, connected)
        with opening:
            order.append(address)
            await asyncio.sleep(0)

    addresses = [*(crowd.format(number) for number in range(50)), "198.51.100.1"]
    await asyncio.wait_for(asyncio.gather(*map(open_one, addresses)), 5)
    assert order.index("198.51.100.1") < openings_module.AT_WORK
    assert len(order) == 51


@pytest.mark.parametrize("leaves", [True, False])
async def test_an_opening_that_ends_early_lets_others_go_on(leaves: bool) -> None:
    openings, left = Openings(), asyncio.Event()

    async def leaving() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    at_work = [await openings.admit("crowd", connected) for _ in range(openings_module.AT_WORK_OF_NETWORK)]
    first = asyncio.ensure_future(openings.admit("crowd", leaving))
    second = asyncio.ensure_future(openings.admit("crowd", connected))
    await asyncio.sleep(0)
    if leaves:
        left.set()
        with pytest.raises(ClientDisconnect):
            await asyncio.wait_for(first, 5)
    else:
        first.cancel()
    with at_work[0][0]:
        pass
    opening, _ = await asyncio.wait_for(second, 5)
    with opening:
        pass


async def test_what_arrives_while_an_opening_waits_is_kept() -> None:
    openings, messages = Openings(), asyncio.Queue[Message]()
    at_work = [await openings.admit("crowd", connected) for _ in range(openings_module.AT_WORK_OF_NETWORK)]
    waiting = asyncio.ensure_future(openings.admit("crowd", messages.get))
    await messages.put({"type": "http.request", "body": b"", "more_body": False})
    while not messages.empty():
        await asyncio.sleep(0)
    with at_work[0][0]:
        pass
    _, receive = await asyncio.wait_for(waiting, 5)
    await messages.put({"type": "http.disconnect"})
    assert [(await receive())["type"] for _ in range(2)] == ["http.request", "http.disconnect"]


async def test_few_streams_are_opened_at_once_before_their_tokens_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2,200 streams opened at once on connections from ten addresses, everything else waited for five seconds."""
    at_work, counts = set[int](), list[int]()

    class Site:
        async def verify(self, _: str) -> Tenant:
            task = id(asyncio.current_task())
            at_work.add(task)
            counts.append(len(at_work))
            await asyncio.sleep(0)
            at_work.remove(task)
            raise Unauthenticated

    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    monkeypatch.setattr(gate, "is_site_token", lambda _: True)
    monkeypatch.setattr(in_progress, "ANONYMOUS_BURST", 10_000)
    monkeypatch.setattr(
        "tests.unit.pipelines.test_gate.ROUTES", (Route("GET", "/events", scope="operate", follows=True),)
    )
    guarded = gate_of(nothing)
    monkeypatch.setattr(guarded, "visitors", Site())

    async def open_from(address: str) -> int:
        transport = httpx.ASGITransport(guarded, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://opora", headers=bearer()) as client:
            return (await client.get("/events")).status_code

    codes = await asyncio.gather(*(open_from(f"192.0.{number % 10}.1") for number in range(2_200)))
    assert set(codes) == {401}
    assert max(counts) <= openings_module.AT_WORK


async def test_refused_streams_that_are_paced_keep_no_other_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    paced, go = list[str](), asyncio.Event()

    async def pace(_: InProgress, address: str) -> None:
        paced.append(address)
        await go.wait()

    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    monkeypatch.setattr(InProgress, "pace", pace)
    monkeypatch.setattr("tests.unit.pipelines.test_gate.ROUTES", (Route("GET", "/events", "operate", follows=True),))
    guarded = gate_of(nothing)

    async def open_from(number: int) -> int:
        transport = httpx.ASGITransport(guarded, client=(f"192.0.{number}.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://opora", headers=bearer("bad")) as client:
            return (await client.get("/events")).status_code

    count = 2 * openings_module.AT_WORK
    refusals = asyncio.gather(*(open_from(number) for number in range(count)))
    async with asyncio.timeout(5):
        while len(paced) < count:
            await asyncio.sleep(0)
    opening, _ = await asyncio.wait_for(guarded.in_progress.openings.admit("neighbour", connected), 5)
    with opening:
        go.set()
        assert await refusals == [401] * count


async def test_streams_read_a_change_once(installation: Settings) -> None:
    go, reads = Event(), list[int]()

    def read() -> int:
        reads.append(1)
        assert go.wait(10)
        return len(reads)

    with in_force(installation), acting_as(STAFF):
        first = [asyncio.create_task(shared_reads.shared(read, "chat", 1)) for _ in range(STREAMS)]
        while not reads:
            await asyncio.sleep(0)
        fanout.announce(Announcement(ATTACKER, "chat"))
        later = [asyncio.create_task(shared_reads.shared(read, "chat", 1)) for _ in range(STREAMS)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*first, *later)
    assert len(reads) == 2


async def test_streams_of_two_chats_read_at_once(installation: Settings) -> None:
    """After a restart, the last of 600 visitors waited five seconds for its messages."""
    both = Barrier(2, timeout=5)
    with in_force(installation), acting_as(STAFF):
        places = await asyncio.gather(*(shared_reads.shared(both.wait, "chat", number) for number in range(2)))
    assert sorted(places) == [0, 1]


async def test_the_streams_of_a_tenant_seldom_wake_and_then_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "_WAKE_SECONDS", 0.01, raising=False)
    loop, woken = asyncio.get_running_loop(), list[float]()

    async def follow(watcher: fanout.Watcher) -> None:
        while True:
            await watcher.wait(5)
            woken.append(loop.time())

    with acting_as(STAFF), ExitStack() as stack:
        watchers = [stack.enter_context(fanout.watching()) for _ in range(STREAMS)]
        following = [asyncio.create_task(follow(watcher)) for watcher in watchers]
        ends = loop.time() + 0.8
        while loop.time() < ends:
            fanout.announce(Announcement(ATTACKER, "chat"))
            await asyncio.sleep(0)
        for one in following:
            one.cancel()
        # At once, and then every half second.
        assert len(woken) <= 4 * STREAMS
        assert len(woken) >= 2 * STREAMS
        assert shared_reads.poll_seconds() == max(shared_reads.POLL_SECONDS, STREAMS / 10)


async def test_silent_streams_delay_no_news() -> None:
    """With a thousand open widgets, a message after a notice of typing was shown three seconds late."""
    loop = asyncio.get_running_loop()
    with acting_as(STAFF), ExitStack() as stack:
        for number in range(999):
            stack.enter_context(fanout.watching(f"silent {number}"))
        watcher = stack.enter_context(fanout.watching("chat"))
        fanout.announce(Announcement(ATTACKER, "chat", "typing"))
        await watcher.wait(5)
        fanout.announce(Announcement(ATTACKER, "chat"))
        asked = loop.time()
        changed, _ = await watcher.wait(5)
        assert changed == {"chat"}
        assert loop.time() - asked < 0.5

"""Replicas hear of each other's changes through Redis, and lose none while Redis is away."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from time import monotonic, time

import pytest
from sqlalchemy import event

from settings import Settings, get_settings
from tenants.access import revocations
from tenants.accounts import policy, registry
from tenants.accounts.registry import Registry
from tenants.chats import fanout, outbox, sites, webhooks
from tenants.chats.fanout import Announcement
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Unauthenticated
from tenants.knowledge import lexicon, relations, tools
from tenants.storage import bus, cache, database
from tenants.storage.cache import TenantCache
from tests import servers
from tests.servers import own_database

ACME = Tenant("acme", "anna")
NAME = "of this test"


@pytest.fixture
def place() -> Iterator[Path]:
    """The folder of a Redis server of this test alone."""
    with servers.folder() as place:
        yield place


@pytest.fixture
def replica(
    place: Path, installation: Settings, postgres_url: str, migrated: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """A replica on PostgreSQL that listens to Redis, which a test starts. Values without notices are stale at once."""
    monkeypatch.setattr(cache, "FRESH_SECONDS", 0.0)
    # Redis has stopped by the time the replica closes, which waits for the next attempt to reach it.
    monkeypatch.setattr(bus, "_RECONNECT_SECONDS", 0.1)
    with own_database(postgres_url, migrated) as url:
        monkeypatch.setenv("OPORA_DATABASE_URL", url.render_as_string(hide_password=False))
        monkeypatch.setenv("OPORA_REDIS_URL", f"unix://{place}/redis.sock?db=0")
        get_settings.cache_clear()
        Registry().add("acme")
        bus.listen()
        yield get_settings()
        bus.close_all()
        database.close_all()


@pytest.fixture
def other(replica: Settings) -> bus._Link:
    """Another replica of the installation, which only sends."""
    return bus._Link(replica)


@pytest.fixture
def values() -> Iterator[TenantCache[int]]:
    yield TenantCache(NAME)
    del cache._CACHES[NAME]


def eventually(happens: Callable[[], bool]) -> bool:
    return any(happens() or Event().wait(0.05) for _ in range(400))


def is_live(settings: Settings) -> bool:
    return bus.is_live(settings.database)


def test_a_change_elsewhere_is_seen_at_once_and_others_stay_cached(
    replica: Settings, other: bus._Link, place: Path, values: TenantCache[int]
) -> None:
    key, neighbour = (replica.database, "acme"), (replica.database, "other")
    loads = iter(range(100))

    def load(_known: int | None) -> int:
        return next(loads)

    with servers.redis_in(place):
        assert eventually(lambda: is_live(replica))
        assert [values.get(key, load), values.get(neighbour, load), values.get(key, load)] == [0, 1, 0]
        other.publish("expired", json.dumps([NAME, "acme"]))
        assert eventually(lambda: values.get(key, load) > 1)
        assert values.get(neighbour, load) == 1
        changed = values.get(key, load)
        bus.publish("expired", json.dumps([NAME, "acme"]))
        other.publish("expired", json.dumps([NAME, "other"]))
        assert eventually(lambda: values.get(neighbour, load) > 1)
        assert values.get(key, load) == changed, "this process ignores its own notices"


def test_workers_hear_of_a_delivery_as_soon_as_it_is_stored(
    replica: Settings, other: bus._Link, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with acting_as(ACME):
        receiver = webhooks.add("https://crm.example/hook")

    sent: list[str] = []

    def publish(channel: str, payload: str) -> None:
        outbox.arrived.clear()  # set already for this process, which plays the worker
        sent.append(channel)
        other.publish(channel, payload)

    monkeypatch.setattr(bus, "publish", publish)
    with servers.redis_in(place):
        assert eventually(lambda: is_live(replica))
        with acting_as(ACME):
            outbox.enqueue_test(receiver.webhook_id)
        assert sent == ["deliveries"]
        assert eventually(outbox.arrived.is_set)


def test_changes_during_an_outage_of_redis_are_seen(
    replica: Settings, other: bus._Link, place: Path, values: TenantCache[str], caplog: pytest.LogCaptureFixture
) -> None:
    key, stored = (replica.database, "acme"), ["first"]

    def seen() -> str:
        return values.get(key, lambda _: stored[-1])

    with servers.redis_in(place):
        assert eventually(lambda: is_live(replica))
        assert seen() == "first"
    assert eventually(lambda: not is_live(replica))
    stored.append("while Redis is away")
    other.publish("expired", json.dumps([NAME, "acme"]))
    assert seen() == "while Redis is away"
    with servers.redis_in(place):
        assert eventually(lambda: is_live(replica))
        assert seen() == "while Redis is away"
        stored.append("after it came back")
        other._resting_until = float("-inf")
        other.make_up()
        assert eventually(lambda: seen() == "after it came back")


async def test_watchers_of_chats_read_again_after_an_outage(replica: Settings, other: bus._Link, place: Path) -> None:
    async def changed(watcher: fanout.Watcher) -> frozenset[str]:
        for _ in range(400):
            chats, _signals = await watcher.wait(0.05)
            if chats:
                return chats
        return frozenset()

    def announce() -> None:
        other.publish("chats", json.dumps(asdict(Announcement("acme", "c1"))))

    with acting_as(ACME), ExitStack() as watching:
        chat, all_chats = (watching.enter_context(fanout.watching(one)) for one in ("c1", None))
        with servers.redis_in(place):
            assert await asyncio.to_thread(eventually, lambda: is_live(replica))
            await changed(chat), await changed(all_chats)
            await asyncio.to_thread(announce)
            assert (await changed(chat), await changed(all_chats)) == (frozenset({"c1"}), frozenset({"c1"}))
        assert await asyncio.to_thread(eventually, lambda: not is_live(replica))
        await asyncio.to_thread(announce)
        with servers.redis_in(place):
            assert (await changed(chat), await changed(all_chats)) == (frozenset({"c1"}), frozenset({""}))


async def test_a_question_costs_no_query_while_notices_arrive(
    replica: Settings, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def what_a_question_needs() -> None:
        await revocations.check(context.current())
        for read in (policy.current, lexicon.current, tools.offered, relations.current):
            await asyncio.to_thread(read)

    statements: list[str] = []
    with servers.redis_in(place), acting_as(ACME):
        site = await asyncio.to_thread(sites.add, "Shop", ["*"])
        assert await asyncio.to_thread(eventually, lambda: is_live(replica))
        registry.refresh()
        for _ in range(2):
            await what_a_question_needs()
            await sites.load(site.key)
            if not statements:
                engine = database.engine(replica)
                event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
                statements.append("listening")
        assert statements == ["listening"]
        later = monotonic() + cache.NOTIFIED_SECONDS
        monkeypatch.setattr(cache, "monotonic", lambda: later)
        await what_a_question_needs()
    read = [one for one in statements[1:] if "set_config" not in one]
    assert len(read) == 1, "the tenant's record shows that nothing has changed"
    assert "FROM tenants" in read[0]


async def test_a_change_without_a_notice_is_seen_within_a_minute(
    replica: Settings, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command without `OPORA_REDIS_URL`, or a process that is killed right after its commit."""
    caller = replace(ACME, token_id="stolen", issued_at=time())
    schema = {"properties": {"number": {"type": "string"}}}
    address = "https://crm.example/orders"
    tool = tools.parsed({"name": "o", "title": "O", "description": "d", "url": address, "parameters": schema})
    term = lexicon.ChunkTerms(frozenset({"new"}), frozenset({"new"}))
    with servers.redis_in(place), acting_as(caller):
        assert await asyncio.to_thread(eventually, lambda: is_live(replica))

        def seen() -> tuple[int, int, bool]:
            return len(tools.offered()), lexicon.current().chunks, registry.current().suspended_at is not None

        await revocations.check(caller)
        assert await asyncio.to_thread(seen) == (0, 0, False)
        with monkeypatch.context() as silent:
            silent.setattr(registry, "expire", lambda: None)
            await asyncio.to_thread(revocations.revoke, "token", "stolen")
            await asyncio.to_thread(tools.put, tool)
            await asyncio.to_thread(lexicon.apply, [term])
            await asyncio.to_thread(registry.suspend, "acme", "admin")
        later = monotonic() + cache.NOTIFIED_SECONDS
        monkeypatch.setattr(cache, "monotonic", lambda: later)
        with pytest.raises(Unauthenticated, match="token_revoked"):
            await revocations.check(caller)
        assert await asyncio.to_thread(seen) == (1, 1, True)

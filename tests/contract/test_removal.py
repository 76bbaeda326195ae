"""Removing a tenant removes all of its data and none of the others'."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from redis import Redis

from components.ingest.reconcile import compare
from pipelines.ingest.usecase import Ingest
from settings import Settings, get_settings
from tenants import index
from tenants.access import quotas
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit import search, store
from tenants.audit.recorder import Recorder
from tenants.chats import conversation_memory, sites
from tenants.chats import store as chats
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, NotFound
from tenants.desk import operator_sessions, operators
from tenants.knowledge import lexicon, tools
from tenants.privacy import erasures, removal
from tenants.storage import bus, database, redis_server
from tenants.work import locks, stream_log, uploads
from tenants.work.stream_log import LoggedStream
from tests.audits import entry
from tests.contract.test_backup import contents

CANARY = "канарейка-5512"


def fill(tenant_id: str, settings: Settings, folder: Path) -> None:
    """Store data of a tenant in many places, all with its word."""
    Registry().add(tenant_id)
    with acting_as(Tenant(tenant_id, f"anna-{CANARY}")):
        folder.mkdir()
        (folder / "a.md").write_text(f"# {CANARY}\n\nВернуть {CANARY} можно за 14 дней.\n")
        Ingest().run_path(folder)
        store.append([entry("turn", tenant_id=tenant_id, question=CANARY, at=datetime.now(UTC))], settings)
        conversation_memory.remember("s1", conversation_memory.PastTurn(CANARY, "answered"))
        sites.add(CANARY, ["https://shop.example"])
        chats.post(chats.start().chat_id, CANARY)
        operator = operators.add(f"{tenant_id}-anna", "снег идёт над рекой", role="admin")
        operator_sessions.begin(operator, address=CANARY, browser="")
        job_id = "job"
        upload = uploads.Upload(job_id)
        file = upload.file("b.md")
        file.write(CANARY.encode())
        file.close()
        upload.close(keep=True)
    recorder = Recorder(settings)
    recorder.record(entry("spooled", tenant_id=tenant_id, question=CANARY))
    recorder.spool.quarantine(entry("q", tenant_id=tenant_id, question=CANARY).line())
    recorder.spool.cut()


def holding(folder: Path) -> list[Path]:
    forms = CANARY.encode(), CANARY.encode("unicode-escape")
    return [path for path in folder.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)]


def test_every_table_is_known_to_be_a_tenants_or_the_installations() -> None:
    tenants_own = {table.name for table in Base.metadata.tables.values() if "tenant_id" in table.columns}
    assert set(Base.metadata.tables) == tenants_own | removal.INSTALLATION | {"operator_sessions"}


def test_everything_of_it_goes_and_nothing_of_another(records: Settings, tmp_path: Path) -> None:
    Registry().add("other")
    with acting_as(Tenant("other", "bob")):
        conversation_memory.remember("s1", conversation_memory.PastTurn("Где?", "answered"))
        operators.add("bob", "снег идёт над рекой", role="admin")
    before = contents(records)
    fill("acme", records, tmp_path / "articles")
    removed = removal.remove("acme")
    assert removed.rows["documents"] == removed.rows["operator_sessions"] == removed.rows["tenants"] == 1
    assert contents(records) == before
    index.close_all()
    database.close_all()
    assert holding(records.data_dir) == []
    assert [path.name for path in records.data_dir.rglob("*acme*")] == []
    assert [erasure.tenant_id for erasure in erasures.read(records.data_dir / "erasures.jsonl")] == ["acme"]
    with pytest.raises(NotFound, match="tenant_unknown"):
        removal.remove("acme")


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_another_of_the_same_id_begins_anew(records: Settings, tmp_path: Path) -> None:
    """The service may have the removed one in memory: its index open, its lexicon, its tools."""
    fill("acme", records, tmp_path / "articles")
    with acting_as(Tenant("acme", "anna")):
        assert index.open_collection().count() == 1
        assert lexicon.current().chunks == 1
    removal.remove("acme")
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna")):
        assert index.open_collection().count() == lexicon.current().chunks == 0
        assert not tools.all()
        (tmp_path / "articles" / "a.md").write_text("# Оплата\n\nПлатить можно картой.\n")
        Ingest().run_path(tmp_path / "articles")
        assert compare(count=True).clean
        assert search.verify().links == 0


def test_a_turn_that_comes_too_late_is_dropped_not_kept_aside(records: Settings) -> None:
    Registry().add("acme")
    recorder = Recorder(records)
    recorder.record(entry("late", question=CANARY))
    removal.remove("acme")
    recorder.close()
    database.close_all()
    assert holding(records.data_dir) == []


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_it_waits_for_an_ingest_run_and_removes_nothing_then(
    records: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Registry().add("acme")
    monkeypatch.setattr(removal, "_PATIENCE_SECONDS", 0.0)
    own = locks.FileClaims(records.data_dir / "claims")
    assert own.take("acme")
    with pytest.raises(Busy, match="ingest_busy"):
        removal.remove("acme")
    own.close()
    assert Registry().exists("acme")
    removal.remove("acme")


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_what_redis_holds_of_its_people_goes(
    records: Settings, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPORA_REDIS_URL", redis_url)
    monkeypatch.setenv("OPORA_RATE_LIMIT_PER_MINUTE", "60")
    monkeypatch.setattr(redis_server, "is_configured", lambda _: True)
    get_settings.cache_clear()
    # New people, whose calls no other test has counted.
    people = [Tenant(tenant_id, f"anna-{uuid4().hex}") for tenant_id in ("acme", "other")]

    async def ask() -> None:
        limiter = quotas.RateLimiter(get_settings())
        for person in people:
            with acting_as(person):
                await limiter.admit()
        await limiter.close()

    with Redis.from_url(redis_url) as client:
        others = set(client.keys("opora:limits*"))
        for person in people:
            Registry().add(person.tenant_id)
            with acting_as(person):
                conversation_memory.remember("s1", conversation_memory.PastTurn("Где?", "answered"))
                stream = LoggedStream("t", stream_log.owner(), "process", "hash")
                stream_log.begin(stream, get_settings())
        asyncio.run(ask())
        counted = set(client.keys("opora:limits*")) - others
        assert counted
        removal.remove("acme")
        assert len(counted & set(client.keys("opora:limits*"))) == len(counted) / 2
    found = []
    for person in people:
        with acting_as(person):
            found.append(stream_log.find("t") is not None)
    assert found == [False, True]
    bus.close_all()
    locks.close_all()

"""A tenant that goes on writing while it is removed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr

from settings import Settings
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.chats import conversation_memory
from tenants.chats.tables import ConversationRow
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy
from tenants.privacy import erasures, removal
from tenants.storage import database
from tenants.storage.tables import Base
from tenants.storage.tenant_session import TenantSession
from tenants.work import jobs, locks
from tests import servers
from tests.attack.attacking import ATTACKER
from tests.service.serving import in_force


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    settings = Settings(data_dir=tmp_path)
    with in_force(settings):
        Registry().add(ATTACKER)
        yield settings
        locks.close_all()


def upload_until_suspended(own: locks.FileClaims, ended: Event) -> None:
    """Hold the tenant's ingest run until no job of it is left. Its last upload ends after the suspension."""
    with acting_as(Tenant(ATTACKER, "anna")):
        while registry.current().suspended_at is None and not ended.wait(0.2):
            jobs.add(jobs.new_id(), "upload", [])
        jobs.add(jobs.new_id(), "upload", [])
        while jobs.open_jobs() and not ended.wait(0.05):
            pass
    own.close()


def test_a_tenant_that_keeps_uploading_is_removed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_PATIENCE_SECONDS", 8.0)
    own = locks.FileClaims(settings.data_dir / "claims")
    assert own.take(ATTACKER)
    ended = Event()
    with ThreadPoolExecutor(1) as pool:
        uploading = pool.submit(upload_until_suspended, own, ended)
        try:
            removal.remove(ATTACKER)
        finally:
            ended.set()
        uploading.result()
    assert not Registry().exists(ATTACKER)


def test_a_removal_that_could_not_begin_changes_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_PATIENCE_SECONDS", 0.0)
    own = locks.FileClaims(settings.data_dir / "claims")
    assert own.take(ATTACKER)
    with pytest.raises(Busy, match="ingest_busy"):
        removal.remove(ATTACKER)
    own.close()
    assert Registry().get(ATTACKER).suspended_at is None
    journal = settings.data_dir / "erasures.jsonl"
    assert not journal.exists() or not erasures.read(journal)


def test_a_removal_that_could_not_begin_leaves_a_suspension(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator suspended the tenant while its removal waited, and the removal resumed it."""
    monkeypatch.setattr(removal, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "open_jobs", lambda: (registry.suspend(ATTACKER, "root"), ())[1])
    own = locks.FileClaims(settings.data_dir / "claims")
    assert own.take(ATTACKER)
    with pytest.raises(Busy, match="ingest_busy"):
        removal.remove(ATTACKER)
    own.close()
    assert Registry().get(ATTACKER).suspended_at is not None


def test_rows_written_during_a_removal_do_not_stop_it(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that answers questions writes while the rows are deleted, one table after another."""
    delete = TenantSession.remove

    def write() -> None:
        with acting_as(Tenant(ATTACKER, "anna")):
            conversation_memory.remember("s1", conversation_memory.PastTurn("Где заказ?", "answered"))

    def delete_and_write(session: TenantSession, kind: type[Base], *conditions: Any) -> int:  # noqa: ANN401 - passed on
        count = delete(session, kind, *conditions)
        if kind is ConversationRow:
            wait([pool.submit(write)], timeout=1)
        return count

    with servers.own_database(postgres_url) as url, ThreadPoolExecutor(1) as pool:
        address = url.render_as_string(hide_password=False)
        with in_force(
            Settings(data_dir=tmp_path, database_url=address, data_keys=SecretStr("the same for all replicas"))
        ):
            Registry().add(ATTACKER)
            monkeypatch.setattr(TenantSession, "remove", delete_and_write)
            removal.remove(ATTACKER)
            assert not Registry().exists(ATTACKER)
            locks.close_all()
        database.close_all()

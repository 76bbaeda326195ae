"""A tenant with a year of turns that may be outdated for a month."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Table, event, func, select, update

from settings import Settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.chats import store as store_of_chats
from tenants.chats.tables import OutboxRow
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.privacy import chat_people, retention
from tenants.storage import database
from tenants.storage.audit_tables import AuditRow
from tests.attack.attacking import ATTACKER, VICTIM
from tests.audits import entry
from tests.chats import webhook
from tests.installations import installed

TURNS = 2_500
OLD = datetime.now(UTC) - timedelta(days=400)


@pytest.fixture
def outdated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Expired turns of two tenants."""
    with installed(tmp_path_factory.mktemp("outdated") / "data") as settings:
        for tenant_id, count in ((ATTACKER, TURNS), (VICTIM, 3)):
            Registry(settings).add(tenant_id)
            with acting_as(Tenant(tenant_id, "anna")):
                turns = [entry(f"t{number}", at=OLD, tenant_id=tenant_id) for number in range(count)]
                store.append(turns, settings)
        yield settings


def links_of(tenant_id: str, settings: Settings) -> int:
    with database.across_tenants(settings) as session:
        count = session.scalar(select(func.count()).select_from(AuditRow).where(AuditRow.tenant_id == tenant_id))
    return count or 0


def test_records_are_pruned_in_batches(outdated: Settings) -> None:
    commits: list[object] = []
    event.listen(database.engine(outdated), "commit", commits.append)
    with acting_as(Tenant(ATTACKER, "anna")):
        assert store.prune(datetime.now(UTC) - timedelta(days=30), outdated) == TURNS
    assert len(commits) >= 3, "others write in between"
    assert links_of(ATTACKER, outdated) == 3, "each batch says what it has dropped"
    with acting_as(Tenant(ATTACKER, "anna")):
        assert search.verify().faults == ()


def test_what_cannot_be_pruned_of_one_tenant_leaves_the_others(
    outdated: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[[Settings], AbstractContextManager[object]] = store._appending

    def failing(settings: Settings) -> AbstractContextManager[object]:
        if context.current().tenant_id == ATTACKER:
            raise TimeoutError
        return real(settings)

    monkeypatch.setattr(store, "_appending", failing)
    store.prune_all(outdated, Event())
    assert links_of(ATTACKER, outdated) == TURNS
    assert links_of(VICTIM, outdated) == 1, "what is left says what was pruned"


def test_expired_rows_are_pruned_in_small_transactions(outdated: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 10)
    with acting_as(Tenant(ATTACKER, "anna")):
        webhook("chat.message")
        chat = store_of_chats.start()
        for number in range(25):
            store_of_chats.post(chat.chat_id, str(number))
    with database.across_tenants(outdated, write=True) as session:
        session.execute(update(OutboxRow).values(state="delivered", created_at=OLD))
    deleted: list[int] = []

    def count(*given: Any) -> None:  # noqa: ANN401 - the arguments of SQLAlchemy's event
        if given[2].startswith("DELETE FROM outbox"):
            deleted.append(given[1].rowcount)

    event.listen(database.engine(outdated), "after_cursor_execute", count)
    real, failed = retention._prune_some, list[str]()

    def failing(table: Table, old: ColumnElement[bool], most: int) -> int:
        if table.name == "conversations":
            failed.append(table.name)
            raise TimeoutError
        return real(table, old, most)

    monkeypatch.setattr(retention, "_prune_some", failing)
    retention.prune()
    assert (deleted, failed) == ([10, 10, 5], ["conversations"])


def test_all_expired_chats_are_pruned_in_an_hour(outdated: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_people, "AT_ONCE", 10)
    with acting_as(Tenant(VICTIM, "anna")):
        policy.change(chat_days=30)
        for _ in range(25):
            store_of_chats.start()
        assert chat_people.prune(datetime.now(UTC) + timedelta(days=31)) == 25

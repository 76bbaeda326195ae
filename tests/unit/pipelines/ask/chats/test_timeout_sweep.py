"""Snoozed chats come back; chats that wait too long return to the assistant, by their own tenant's rule."""

from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from sqlalchemy import event

from pipelines.ask.chats import timeout_sweep
from pipelines.background import tidy
from settings import Settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import files, store, timeouts
from tenants.chats.records import Chat, HandoffRequest
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tests.chats import all_tickets

PATIENT, HURRIED = Tenant("patient", "v:1"), Tenant("hurried", "v:1")


@pytest.fixture(autouse=True)
def _tenants(installation: Settings) -> None:
    for tenant in (PATIENT, HURRIED):
        Registry().add(tenant.tenant_id)
    with acting_as(HURRIED):
        policy.change(queue_minutes=10)


def queued(tenant: Tenant) -> Chat:
    with acting_as(tenant):
        handed = store.hand_over(store.start().chat_id, HandoffRequest("user_request"))
        assert handed is not None
        return handed


def state(tenant: Tenant, chat: Chat) -> str:
    with acting_as(tenant):
        return store.get(chat.chat_id).state


def test_an_overdue_chat_returns_to_the_assistant_with_an_open_ticket() -> None:
    patient, hurried = queued(PATIENT), queued(HURRIED)
    timeout_sweep.sweep(Event(), datetime.now(UTC) + timedelta(minutes=9))
    assert (state(PATIENT, patient), state(HURRIED, hurried)) == ("queued", "queued")
    timeout_sweep.sweep(Event(), datetime.now(UTC) + timedelta(minutes=11))
    assert (state(PATIENT, patient), state(HURRIED, hurried)) == ("queued", "bot")
    with acting_as(HURRIED):
        ticket_id = all_tickets()[0].ticket_id
        assert [one.ticket_id for one in store.latest(with_ticket=True)] == [ticket_id]
        last = store.messages(hurried.chat_id)[-1]
        assert (last.body["event"], last.body["ticket_id"]) == ("queue_timed_out", ticket_id)
        assert "Обращение остаётся открытым" in last.text
        assert "Сотрудники" not in last.text


def test_who_is_not_answered_in_time_reads_when_somebody_will_be_there() -> None:
    with acting_as(HURRIED):
        policy.change(hours={"zone": "UTC", "week": {}, "away": {"ru": "У нас ремонт."}})
    hurried = queued(HURRIED)
    for _ in range(2):
        timeout_sweep.sweep(Event(), datetime.now(UTC) + timedelta(minutes=11))
    with acting_as(HURRIED):
        lines = [one.text for one in store.messages(hurried.chat_id) if one.text]
    assert len(lines) == 1
    assert "У нас ремонт. А пока можно спросить помощника." in lines[0]


def test_files_of_chats_go_when_their_time_has_come() -> None:
    with acting_as(PATIENT):
        chat = store.start()
        files.add(chat.chat_id, "a.txt", "text/plain", b"text")
        tidy(Event())
        assert len(files.of_chat(chat.chat_id)) == 1
    tidy(Event(), datetime.now(UTC) + timedelta(days=2))
    with acting_as(PATIENT):
        assert files.of_chat(chat.chat_id) == ()


def test_a_chat_that_was_put_off_comes_back_with_whoever_has_it() -> None:
    chat = queued(PATIENT)
    with acting_as(Tenant("patient", "anna")):
        store.take(chat.chat_id, name="Анна")
        store.snooze(chat.chat_id, datetime.now(UTC) + timedelta(hours=1))
    timeout_sweep.sweep(Event())
    assert state(PATIENT, chat) == "snoozed"
    timeout_sweep.sweep(Event(), datetime.now(UTC) + timedelta(hours=2))
    assert state(PATIENT, chat) == "human"


def test_a_sweep_with_nothing_due_is_one_query_for_any_number_of_tenants() -> None:
    statements: list[str] = []
    event.listen(database.engine(), "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    for _ in range(2):
        Registry().add(f"t{len(statements)}")
        statements.clear()
        timeout_sweep.sweep(Event())
        assert [one.split()[0] for one in statements if not one.startswith("BEGIN")] == ["SELECT"]


def test_tenants_take_turns_with_their_overdue_chats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "DUE_AT_ONCE", 2)
    late = Tenant("late", "v:1")
    Registry().add(late.tenant_id)
    for tenant in (PATIENT, late):
        with acting_as(tenant):
            policy.change(queue_minutes=10)
    chats = [(tenant, queued(tenant)) for tenant in (HURRIED,) * 5 + (PATIENT,) * 2]
    moved: list[str] = []

    def words(chat: Chat) -> str:
        if not moved:
            chats.append((late, queued(late)))
        moved.append(chat.chat_id)
        return ""

    monkeypatch.setattr(timeout_sweep, "_still_open", words)
    timeout_sweep.sweep(Event(), datetime.now(UTC) + timedelta(minutes=11))
    assert {state(tenant, chat) for tenant, chat in chats} == {"bot"}
    others = {chat.chat_id for tenant, chat in chats if tenant is not HURRIED}
    assert moved[-1] not in others, "the last of five comes after those of others, also of one due meanwhile"

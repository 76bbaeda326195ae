"""Limits on what chats store, on every database: a tenant's bytes a day, the disk's reserve, the size of a branch."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from settings import Settings
from tenants.access.tables import SpendingRow
from tenants.accounts.registry import Registry
from tenants.chats import branches, files, store, text_quota
from tenants.chats.records import Body, Chat
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import RateLimited, TryAgain
from tenants.storage import bus, database, disk
from tests.chats import webhook

ANNA = Tenant("acme", "anna")


@pytest.fixture
def chat(records: Settings) -> Iterator[Chat]:
    """A visitor's chat with the assistant; the visitor is in context."""
    for tenant_id in ("acme", "other"):
        Registry(records).add(tenant_id)
    with acting_as(Tenant("acme", "visitor-1")):
        yield store.start(locale="ru")
    bus.close_all()


def texts(chat: Chat) -> list[str]:
    return [one.text for one in store.messages(chat.chat_id) if one.kind == "text"]


def accepted(write: Callable[[], object]) -> int:
    """Write until it is refused; return how often it was accepted."""
    for number in range(100):
        try:
            write()
        except RateLimited:
            return number
    raise AssertionError("never refused")


def test_a_tenant_writes_so_many_bytes_a_day(chat: Chat, records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = records.model_copy(update={"chat_bytes_per_day": 5_000})
    monkeypatch.setattr(text_quota, "get_settings", lambda: limited)
    webhook("chat.message")
    branches.start(chat, store.messages(chat.chat_id))
    first = store.post(chat.chat_id, "ы" * 700, client_id="c1")
    with pytest.raises(RateLimited) as full:
        branches.start(chat, store.messages(chat.chat_id))
    assert full.value.code == "chats_full"
    assert 0 < full.value.retry_after <= 86_400
    assert accepted(lambda: store.post(chat.chat_id, "Вы тут?")) > 0
    with pytest.raises(RateLimited):
        store.start()
    assert store.post(chat.chat_id, "", client_id="c1").message == first.message
    version = first.chat.version
    assert store.answer(chat.chat_id, version, "Да.", turn_id="t", body={}, failed=False) is not None
    with acting_as(ANNA):
        assert accepted(lambda: store.note(chat.chat_id, "ы" * 100)) > 0
        with pytest.raises(RateLimited):
            store.take(chat.chat_id)
        with pytest.raises(RateLimited):
            store.reply(chat.chat_id, "Здравствуйте", seen=99)
    assert store.answer(chat.chat_id, version, "Уже скоро.", turn_id="t2", body={}, failed=False) is not None
    with acting_as(Tenant("other", "visitor-1")):
        store.start()


def test_chats_leave_the_reserve_of_the_disk(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    posted = store.post(chat.chat_id, "Привет")
    monkeypatch.setattr(disk, "free", lambda _: 0)
    with pytest.raises(TryAgain) as full:
        files.add(chat.chat_id, "a.txt", "text/plain", b"text")
    assert full.value.code == "storage_full"
    if database.is_shared():
        return
    with pytest.raises(TryAgain):
        store.post(chat.chat_id, "Ещё")
    with acting_as(ANNA), pytest.raises(TryAgain):
        store.reply(chat.chat_id, "Здравствуйте", seen=1)
    answer = store.answer(chat.chat_id, posted.chat.version, "Да.", turn_id="t", body={}, failed=False)
    assert answer is not None, "what was accepted is answered"


def test_a_branch_takes_the_newest_messages_that_fit(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "MAX_LENGTH", 90)
    for text in ("Раз", "Два", "ы" * 80, "ы" * 200):
        store.post(chat.chat_id, text)
    said = store.messages(chat.chat_id)
    assert texts(branches.start(chat, said)) == ["ы" * 200]
    assert texts(branches.start(chat, said[:3])) == ["Два", "ы" * 80]


def test_a_branch_takes_as_many_russian_turns_as_english_ones(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "MAX_LENGTH", 250)
    posted = store.post(chat.chat_id, "Где мой заказ?")
    for number in ("1", "2"):
        body: Body = {"turn": {"reply": "ы" * 80}}
        store.answer(chat.chat_id, posted.chat.version, "Да.", turn_id=number, body=body, failed=False)
    said = store.messages(chat.chat_id)
    assert texts(branches.start(chat, said)) == ["Где мой заказ?", "Да.", "Да."]


def test_texts_after_a_savepoint_are_counted_once(chat: Chat) -> None:
    with database.writing() as session:
        before = session.locked(SpendingRow, day=datetime.now(UTC).date().isoformat(), usd=0.0).chat_bytes
        text_quota.count(session, "ы" * 50)
        with session.begin_nested():
            text_quota.count(session, "ы" * 20)
        text_quota.count(session, "ы" * 500)
    with database.reading() as session:
        row = session.find(SpendingRow, datetime.now(UTC).date().isoformat())
        assert row is not None
        assert row.chat_bytes - before == 1_140

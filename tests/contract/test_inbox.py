"""The inbox on every database: order, search, pages, and tenant isolation."""

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import TextClause, inspect, update

from tenants.chats import store
from tenants.chats.records import Chat
from tenants.chats.tables import ChatMessageRow, ChatRow
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, Invalid, NotFound
from tenants.desk import inbox, replies
from tenants.desk.inbox import CustomerWords, Filter, Snippet, View
from tenants.storage import database, searching
from tests import desk

ANNA, BORIS = Tenant("acme", "anna"), Tenant("acme", "boris")


def _set(chat: Chat, **values: object) -> Chat:
    with database.writing() as session:
        session.execute(update(ChatRow).where(ChatRow.chat_id == chat.chat_id).values(values))
    return store.get(chat.chat_id)


def _ids(view: View, words: str = "") -> list[str]:
    return [row.chat.chat_id for row in inbox.page(view, Filter(words)).rows]


def test_whoever_waits_is_shown_by_stakes_then_time_then_confidence(acme: Tenant) -> None:
    chats = [desk.waiting("acme", desk.asked("acme", f"v:{number}", "?"), minutes=number) for number in range(4)]
    same = datetime.now(UTC) - timedelta(minutes=2)
    sure = _set(chats[1], waiting_since=same, confidence=0.9)
    unsure = _set(chats[2], waiting_since=same, confidence=0.2)
    urgent = _set(chats[0], reason="high_risk")
    assert _ids("waiting") == [urgent.chat_id, chats[3].chat_id, unsure.chat_id, sure.chat_id]
    assert [row.urgent for row in inbox.page("waiting").rows] == [True, False, False, False]


def test_each_chat_is_in_the_views_of_its_state_and_counted_there(acme: Tenant) -> None:
    waits = desk.waiting("acme", desk.asked("acme", "v:1", "?"))
    owed = desk.waiting("acme", desk.asked("acme", "v:2", "?"))
    _set(owed, state="bot", waiting_since=None)
    with_bot = desk.asked("acme", "v:3", "?")
    mine, theirs, off, over = (desk.asked("acme", f"v:{number}", "?") for number in range(4, 8))
    store.take(mine.chat_id)
    with acting_as(BORIS):
        store.take(theirs.chat_id)
        store.take(off.chat_id)
        store.snooze(off.chat_id, datetime.now(UTC) + timedelta(hours=1))
        store.resolve(over.chat_id)
    views: dict[View, set[str]] = {
        "waiting": {waits.chat_id, owed.chat_id},
        "mine": {mine.chat_id},
        "taken": {theirs.chat_id},
        "assistant": {with_bot.chat_id},
        "snoozed": {off.chat_id},
        "resolved": {over.chat_id},
    }
    assert {view: set(_ids(view)) for view in views} == views
    assert len(_ids("all")) == 7
    assert inbox.counts() == {**{view: len(ids) for view, ids in views.items()}, "all": 7}
    with acting_as(Tenant("globex", "anna")):
        assert set(inbox.counts().values()) == {0}
        assert _ids("all") == []


def test_a_long_search_is_given_up_and_the_list_still_answers(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = desk.asked("acme", "v:1", "Сливается ли вода?")
    slow = TextClause("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
    monkeypatch.setattr(searching, "SECONDS", 1)
    with pytest.raises(Invalid) as late, searching.searching() as session:
        session.execute(slow)
    assert late.value.code == "search_too_long"
    assert _ids("all", "вода") == _ids("all") == [chat.chat_id]


def test_a_tenant_searches_once_at_a_time(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_PATIENCE", 0.1)
    with ThreadPoolExecutor(1) as pool, searching.searching():

        def search(tenant_id: str) -> tuple[CustomerWords, ...]:
            with acting_as(Tenant(tenant_id, "anna")):
                inbox.page("all", Filter("вода"))
                return inbox.asked_before(["вод"], limit=3)

        with pytest.raises(Busy):
            pool.submit(search, "acme").result(5)
        assert pool.submit(search, "globex").result(5) == ()
    assert _ids("all", "вода") == []


def test_a_search_often_looks_for_questions(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    if database.is_shared():
        pytest.skip("a search on a server takes no time of this process")
    chat = desk.asked("acme", "v:1", "Сливается ли вода?")
    note = store.note(chat.chat_id, "абвгдежзик" * 10).message
    with database.writing() as session:
        stored = session.get_one(ChatMessageRow, ("acme", chat.chat_id, note.seq))
        values = {column.key: getattr(stored, column.key) for column in inspect(ChatMessageRow).column_attrs}
        session.insert_rows(
            ChatMessageRow, [{**values, "seq": 100 + number, "message_id": f"{number}"} for number in range(2_000)]
        )
    looks = []
    monkeypatch.setattr(fairness, "yield_to_questions", lambda: looks.append(1))
    assert _ids("all", "щука1 щука2 щука3 щука4 щука5") == []
    assert len(looks) > 5, "where messages are long, 20,000 instructions take 150 ms"


def test_words_are_found_in_any_case_in_messages_customer_and_ticket(acme: Tenant) -> None:
    chat = desk.waiting("acme", desk.asked("acme", "u:ivan@mail.example", "Где Заказ 4471823?", "100% предоплата"))
    desk.asked("acme", "v:2", "Сколько стоит доставка?")
    for words in ("заказ", "ЗАКАЗ", "где 4471823", "ivan@mail", str(chat.ticket_id), "100%"):
        assert _ids("all", words) == [chat.chat_id], words
    for words in ("посылка", "заказ доставка", "100_", "%%", "\\"):
        assert _ids("all", words) == [], words
    with acting_as(Tenant("globex", "anna")):
        assert _ids("all", "заказ") == []


def test_the_last_thing_said_stands_in_the_row_and_no_note_does(acme: Tenant) -> None:
    chat = desk.asked("acme", "v:1", "Где мой заказ?")
    desk.answered("acme", chat, "Передаю вопрос сотруднику.")
    (waiting,) = inbox.page("all").rows
    assert waiting.last == Snippet("customer", "text", "Где мой заказ?")
    store.reply(chat.chat_id, "Едет. " + "Очень " * 100, seen=1, name="Анна")
    store.note(chat.chat_id, "секретная заметка")
    (row,) = inbox.page("all").rows
    assert row.last is not None
    assert (row.last.author, row.last.text[:5], len(row.last.text)) == ("operator", "Едет.", inbox.SNIPPET)


@pytest.mark.parametrize("view", ["waiting", "all"])
def test_pages_follow_each_other_without_loss_while_chats_come_and_go(acme: Tenant, view: View) -> None:
    chats = [desk.waiting("acme", desk.asked("acme", f"v:{number}", "?"), minutes=number) for number in range(9)]
    same = datetime.now(UTC) - timedelta(minutes=30)
    for chat in chats[:6]:
        _set(chat, waiting_since=same, updated_at=same)
    all_ids = _ids(view)
    first = inbox.page(view, limit=4)
    assert first.following is not None
    store.resolve(all_ids[0])
    seen = [row.chat.chat_id for row in first.rows]
    cursor: str | None = first.following
    while cursor is not None:
        following = inbox.page(view, after=cursor, limit=4)
        seen += [row.chat.chat_id for row in following.rows]
        cursor = following.following
    assert seen == all_ids


def test_a_damaged_cursor_is_refused(acme: Tenant, subtests: pytest.Subtests) -> None:
    for cursor in (
        "x",
        "W10=",
        "bnVsbA==",
        "W1sidiIsIDFdLCBbInYiLCAxXV0=",
        "W1sidCIsICJ4Il0sIFsidiIsICJ4Il1d",
        "é" * 9,
        b64encode(b'[["t", "0001-01-01T00:00:00+14:00"], ["v", "x"]]').decode(),
    ):
        for view in ("waiting", "all"):
            with subtests.test(cursor=cursor), pytest.raises(Invalid, match="cursor_invalid"):
                inbox.page(inbox.VIEWS[0] if view == "waiting" else "all", after=cursor)


def test_a_stretch_of_messages_has_notes_and_says_what_is_before_it(acme: Tenant) -> None:
    chat = desk.asked("acme", "v:1", *(f"Сообщение {number}" for number in range(5)))
    store.note(chat.chat_id, "заметка")
    newest = inbox.stretch(chat.chat_id, limit=3)
    assert [one.seq for one in newest.messages] == [4, 5, 6]
    assert newest.earlier
    assert newest.messages[-1].kind == "note"
    older = inbox.stretch(chat.chat_id, before=4, limit=3)
    assert [one.seq for one in older.messages] == [1, 2, 3]
    assert not older.earlier
    with acting_as(Tenant("globex", "anna")):
        assert inbox.stretch(chat.chat_id).messages == ()


def test_canned_replies_belong_to_their_tenant_and_fill_what_is_known(acme: Tenant) -> None:
    hello = replies.add("  Привет  ", "Я {operator}, обращение {ticket}, {unknown} {operator.__class__}")
    known = {"operator": "Анна {ticket}", "ticket": ""}
    assert hello.filled(known) == "Я Анна {ticket}, обращение {ticket}, {unknown} {operator.__class__}"
    assert replies.all() == (hello,)
    with acting_as(Tenant("globex", "boris")):
        assert replies.all() == ()
        with pytest.raises(NotFound, match="reply_unknown"):
            replies.remove(hello.reply_id)
    for title, text in (("", "x"), ("x", " "), ("x" * 101, "x"), ("x", "x" * 5_001), ("x", "\0")):
        with pytest.raises(Invalid, match="reply_invalid"):
            replies.add(title, text)
    replies.remove(hello.reply_id)
    assert replies.all() == ()


def test_the_site_and_the_reason_narrow_a_view(acme: Tenant) -> None:
    shop, other = (desk.asked("acme", f"v:{number}", "Где заказ?") for number in range(2))
    _set(shop, site="shop", reason="user_request", state="queued")
    _set(other, site="blog", reason="high_risk", state="queued")
    for chosen in (Filter(site="shop"), Filter(reason="user_request"), Filter("Где", "shop", "user_request")):
        assert [row.chat.chat_id for row in inbox.page("waiting", chosen).rows] == [shop.chat_id]
    assert inbox.page("waiting", Filter(site="shop", reason="high_risk")).rows == ()
    assert inbox.reasons() == ("high_risk", "user_request")


def test_questions_of_chats_resolved_by_a_person_are_found_by_stems(acme: Tenant) -> None:
    solved, unsolved = (desk.asked("acme", f"v:{number}", "Не Сливает воду") for number in range(2))
    store.reply(solved.chat_id, "Очистите фильтр.", seen=1, name="Анна")
    store.resolve(solved.chat_id)
    assert [one.chat_id for one in inbox.asked_before(["слива"], limit=9)] == [solved.chat_id]
    assert inbox.asked_before([], limit=9) == ()
    assert inbox.last_replies([solved.chat_id, unsolved.chat_id]) == {solved.chat_id: "Очистите фильтр."}

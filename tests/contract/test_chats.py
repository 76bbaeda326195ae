"""Chats on every database: one transaction per change, messages in order, and no reply out of turn."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from threading import Barrier
from typing import get_args

import hypothesis
import pytest

from pipelines.ask.chats.contract import message_part
from settings import Settings
from tenants.accounts.hours import Hours
from tenants.chats import consents, fanout, outbox, sites, store, timeouts, undo
from tenants.chats.fanout import Announcement
from tenants.chats.records import Body, Chat, HandoffRequest, Posted
from tenants.chats.sites import Consent, SiteConfig
from tenants.chats.transitions import STATES, Event, State, after
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Conflict, Forbidden, NotFound, RateLimited
from tenants.privacy import chat_people, persons
from tenants.privacy.persons import Person
from tests.chats import all_tickets, webhook
from tests.contract.conftest import VISITOR

ANNA, BORIS = Tenant("acme", "anna"), Tenant("acme", "boris")
WANTED = HandoffRequest("user_request", question="Позовите человека")


def operator(who: Tenant = ANNA) -> Chat:
    with acting_as(who):
        return store.take(chat_people.of_person(VISITOR.subject, None)[0].chat_id)


def lines(chat: Chat) -> list[str]:
    """Return the thread as a reader sees it: authors, texts and events."""
    return [
        f"{one.author}: {one.text}" if one.kind == "text" else f"({one.body['event']})"
        for one in store.messages(chat.chat_id)
    ]


def test_messages_are_numbered_and_read_from_any_one_on(chat: Chat) -> None:
    posted = store.post(chat.chat_id, "Где мой заказ?")
    assert (posted.message.seq, posted.chat.last_seq, posted.chat.state) == (1, 1, "bot")
    answered = store.answer(
        chat.chat_id, posted.chat.version, "В пути.", turn_id="t1", body={"outcome": "answered"}, failed=False
    )
    assert answered is not None
    assert [one.seq for one in store.messages(chat.chat_id, after=1)] == [2]
    assert lines(chat) == ["customer: Где мой заказ?", "bot: В пути."]


def test_the_same_client_id_is_one_message_however_often_it_is_sent(chat: Chat) -> None:
    barrier = Barrier(4)

    def send() -> Posted:
        barrier.wait()
        return store.post(chat.chat_id, "Привет", client_id="c1")

    with ThreadPoolExecutor(4) as pool:
        sent = [future.result() for future in [pool.submit(copy_context().run, send) for _ in range(4)]]
    assert sorted(one.repeated for one in sent) == [False, True, True, True]
    assert len({one.message.message_id for one in sent}) == 1
    assert len(store.messages(chat.chat_id)) == 1


def test_a_chat_belongs_to_its_visitor_and_its_tenant(chat: Chat) -> None:
    with acting_as(Tenant("acme", "visitor-2")), pytest.raises(NotFound):
        store.own(chat.chat_id)
    with acting_as(Tenant("other", VISITOR.subject)):
        for read in (store.own, store.get, partial(store.post, text="x"), store.take):
            with pytest.raises(NotFound):
                read(chat.chat_id)
        assert store.messages(chat.chat_id) == ()
        assert store.of_caller() == ()


def test_a_handover_stores_ticket_state_notice_and_event_as_one(chat: Chat) -> None:
    hook = webhook("chat.handoff")
    store.hand_over(chat.chat_id, WANTED)
    handed = store.get(chat.chat_id)
    (ticket,) = all_tickets()
    assert (handed.state, handed.ticket_id, handed.reason) == ("queued", ticket.ticket_id, "user_request")
    assert (ticket.subject, ticket.session_id) == (VISITOR.subject, chat.chat_id)
    assert lines(chat) == ["(queued)"]
    assert [one.webhook_id for one in outbox.latest()] == [hook]


def test_a_handover_that_cannot_be_stored_leaves_nothing_behind(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook("chat.handoff")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(outbox, "enqueue", broken)
    with pytest.raises(OSError, match="disk full"):
        store.hand_over(chat.chat_id, WANTED)
    assert store.get(chat.chat_id) == chat
    assert (all_tickets(), store.messages(chat.chat_id), outbox.latest()) == ((), (), ())


def test_there_is_one_open_ticket_per_chat(chat: Chat) -> None:
    store.hand_over(chat.chat_id, WANTED)
    store.hand_over(chat.chat_id, WANTED)
    assert len(all_tickets()) == 1
    with acting_as(ANNA):
        store.resolve(chat.chat_id)
    assert store.get(chat.chat_id).ticket_id is None
    store.hand_over(chat.chat_id, WANTED)
    assert len(all_tickets()) == 2


def test_a_consent_is_kept_as_it_was_given_and_when_it_ended(chat: Chat) -> None:
    consents.check("s1")
    consents.give("Согласен", site="s1", address="192.0.2.1")
    consents.check("s1")
    with acting_as(Tenant("acme", "visitor-2")):
        consents.give("Согласен", site="s1", address="192.0.2.2")
    consents.withdraw("s1")
    with pytest.raises(Forbidden, match="consent_withdrawn"):
        consents.check("s1")
    consents.check("s2")
    with acting_as(Tenant("acme", "visitor-2")):
        consents.check("s1")
    consents.give("Согласен снова", site="s1", address="192.0.2.1")
    consents.check("s1")
    given = persons.export(Person(VISITOR.subject))["consents"]
    assert [(one["text"], one["address"], one["withdrawn_at"] is None) for one in given if isinstance(one, dict)] == [
        ("Согласен", "192.0.2.1", False),
        ("Согласен снова", "192.0.2.1", True),
    ]
    chat_people.erase(VISITOR.subject, None)
    assert persons.export(Person(VISITOR.subject))["consents"] == []
    assert len(persons.export(Person("visitor-2"))["consents"]) == 1


def test_nobody_writes_without_the_consent_that_a_site_asks_for(chat: Chat) -> None:
    key = sites.add("Лавка", [], SiteConfig(consent=Consent(text="Согласен на обработку"))).key
    with pytest.raises(Forbidden, match="consent_missing"):
        consents.check(key)
    consents.give("Согласен на обработку", site=key, address="192.0.2.1")
    consents.check(key)
    with acting_as(Tenant("acme", "visitor-2")), pytest.raises(Forbidden, match="consent_missing"):
        consents.check(key)


def test_asking_for_a_person_again_promises_nothing_more(chat: Chat) -> None:
    webhook("chat.handoff")
    for _ in range(3):
        store.hand_over(chat.chat_id, WANTED, notice=lambda ticket: f"Обращение {ticket.ticket_id}")
    (notice,) = store.messages(chat.chat_id)
    (ticket,) = all_tickets()
    assert (notice.text, notice.body["ticket_id"]) == (f"Обращение {ticket.ticket_id}", ticket.ticket_id)
    assert len(outbox.latest()) == 1
    operator()
    before = store.messages(chat.chat_id)
    handed = store.hand_over(chat.chat_id, WANTED)
    assert handed is not None
    assert (handed.state, store.messages(chat.chat_id), len(outbox.latest())) == ("human", before, 1)


def test_the_hours_of_a_site_go_before_those_of_its_tenant(chat: Chat) -> None:
    site = sites.add("Магазин", ["https://shop.example"])
    assert sites.hours(site.key) is None
    weekly, daily = (Hours.model_validate({"zone": "UTC", "week": {day: ["09:00-18:00"]}}) for day in ("mon", "tue"))
    sites.set_hours("", weekly)
    assert [sites.hours(key) for key in ("", site.key, "removed")] == [weekly] * 3
    sites.set_hours(site.key, daily)
    assert [sites.hours(key) for key in ("", site.key)] == [weekly, daily]
    assert sites.get(site.key).config.files
    with acting_as(Tenant("other", "x")):
        assert sites.hours(site.key) is None
        with pytest.raises(NotFound):
            sites.set_hours(site.key, daily)
    sites.set_hours(site.key, None)
    assert sites.hours(site.key) == weekly


def test_of_two_operators_the_second_is_shown_what_the_first_has_written(chat: Chat) -> None:
    store.hand_over(chat.chat_id, WANTED)
    with acting_as(ANNA):
        first = store.reply(chat.chat_id, "Здравствуйте!", seen=1, name="Анна")
    with acting_as(BORIS):
        with pytest.raises(Conflict, match="chat_answered") as refused:
            store.reply(chat.chat_id, "Добрый день!", seen=1, name="Борис")
        assert refused.value.params == {"seq": first.message.seq, "name": "Анна"}
        store.reply(chat.chat_id, "Добрый день!", seen=first.message.seq, name="Борис")
    assert store.get(chat.chat_id).assignee == "boris"
    assert lines(chat) == [
        "(queued)",
        "(joined)",
        "operator: Здравствуйте!",
        "(left)",
        "(joined)",
        "operator: Добрый день!",
    ]


def _suggested(chat: Chat) -> str:
    body: Body = {"suggestion": {"reply": "Заказ в пути.", "turn": {}, "answers": "m1"}}
    return store.suggest(chat.chat_id, "Заказ в пути. [1]", body).message.message_id


@pytest.mark.parametrize(("text", "use"), [("Заказ в пути.", "accepted"), ("Заказ в пути, Иван.", "edited")])
def test_a_reply_keeps_what_became_of_the_suggestion(chat: Chat, text: str, use: str) -> None:
    with acting_as(ANNA):
        suggestion = _suggested(chat)
        replied = store.reply(chat.chat_id, text, seen=1, name="Анна", suggestion=suggestion)
    assert replied.message.body == {"suggestion": {"message_id": suggestion, "use": use}}
    assert "suggestion" not in message_part(replied.message).body
    assert not [one for one in store.messages(chat.chat_id) if one.message_id == suggestion]


def test_a_suggestion_is_discarded_once_and_only_where_it_was_made(chat: Chat) -> None:
    with acting_as(ANNA):
        suggestion = _suggested(chat)
        first = store.discard_suggestion(chat.chat_id, suggestion)
        again = store.discard_suggestion(chat.chat_id, suggestion)
        assert (again.message, again.repeated) == (first.message, True)
    with acting_as(VISITOR):
        elsewhere = store.start()
    with acting_as(ANNA):
        with pytest.raises(NotFound, match="suggestion_unknown"):
            store.discard_suggestion(elsewhere.chat_id, suggestion)
        with pytest.raises(NotFound, match="suggestion_unknown"):
            store.reply(elsewhere.chat_id, "Да", seen=0, suggestion=suggestion)
    assert lines(elsewhere) == []


def _acts() -> dict[str, Callable[[str], Chat]]:
    return {
        "take": store.take,
        "transfer": lambda chat_id: store.transfer(chat_id, "boris"),
        "hand_back": store.hand_back,
        "snooze": lambda chat_id: store.snooze(chat_id, datetime.now(UTC) + timedelta(hours=1)),
        "resolve": store.resolve,
    }


@pytest.mark.parametrize("act", sorted(_acts()))
def test_what_an_operator_has_just_done_can_be_undone(chat: Chat, act: str) -> None:
    store.hand_over(chat.chat_id, WANTED)
    before = store.get(chat.chat_id)
    with acting_as(ANNA):
        done = _acts()[act](chat.chat_id)
        assert undo.is_possible(done)
        back = undo.undo(chat.chat_id)
    changing = {"version", "last_seq", "updated_at", "undo"}
    kept = {name for name in Chat.__slots__ if name not in changing}
    assert {name: getattr(back, name) for name in kept} == {name: getattr(before, name) for name in kept}
    assert before.ticket_id is not None
    assert [one.ticket_id for one in all_tickets()] == [before.ticket_id]
    assert back.version > done.version
    assert lines(chat)[-1] == "(undone)"
    with acting_as(ANNA), pytest.raises(Conflict, match="nothing_to_undo"):
        undo.undo(chat.chat_id)


def test_nobody_undoes_what_another_did_or_what_has_gone_on_since(chat: Chat) -> None:
    with acting_as(ANNA):
        ended = store.resolve(chat.chat_id)
        assert not undo.is_possible(ended, datetime.now(UTC) + undo.WITHIN + timedelta(seconds=1))
    with acting_as(BORIS), pytest.raises(Conflict, match="nothing_to_undo"):
        undo.undo(chat.chat_id)
    store.post(chat.chat_id, "И ещё вопрос")
    with acting_as(ANNA), pytest.raises(Conflict, match="nothing_to_undo"):
        undo.undo(chat.chat_id)
    assert store.get(chat.chat_id).state == "bot"


def test_a_change_that_builds_on_an_old_state_is_refused(chat: Chat) -> None:
    seen = chat.version
    operator()
    with acting_as(BORIS), pytest.raises(Conflict, match="chat_changed"):
        store.resolve(chat.chat_id, version=seen)


def test_the_assistant_is_silent_once_a_person_has_the_chat(chat: Chat, records: Settings) -> None:
    """Takeovers at random moments of an answer."""
    chance = Random(20261122)
    rounds = 200 if records.database.startswith("sqlite") else 50
    for number in range(min(rounds, 4 * hypothesis.settings().max_examples)):
        posted = store.post(chat.chat_id, f"Вопрос {number}")
        if posted.chat.state != "bot":
            with acting_as(ANNA):
                store.hand_back(chat.chat_id)
            posted = store.post(chat.chat_id, f"Вопрос {number} ещё раз")
        barrier = Barrier(2)

        def answer(
            version: int = posted.chat.version, barrier: Barrier = barrier, late: bool = chance.random() < 0.5
        ) -> Posted | None:
            barrier.wait()
            if late:
                store.get(chat.chat_id)  # about the time that a takeover takes
            return store.answer(chat.chat_id, version, "Ответ", turn_id="t", body={}, failed=False)

        def take(barrier: Barrier = barrier) -> None:
            barrier.wait()
            operator()

        with ThreadPoolExecutor(2) as pool:
            answering, taking = pool.submit(copy_context().run, answer), pool.submit(copy_context().run, take)
            taking.result()
            stored = answering.result()
        thread = store.messages(chat.chat_id, after=posted.message.seq)
        taken = next(one.seq for one in thread if one.body.get("event") == "joined")
        assert all(one.seq < taken for one in thread if one.author == "bot")
        assert (stored is not None) == any(one.author == "bot" for one in thread)


ACTS: dict[Event, Callable[[str], object]] = {
    "customer_message": lambda chat_id: store.post(chat_id, "?"),
    "person_requested": lambda chat_id: store.hand_over(chat_id, WANTED),
    "queue_timed_out": lambda chat_id: timeouts.give_up_waiting(datetime.now(UTC), lambda chat: "Никого."),
    "taken": store.take,
    "operator_replied": lambda chat_id: store.reply(chat_id, "Ответ", seen=1_000),
    "transferred": lambda chat_id: store.transfer(chat_id, "boris"),
    "handed_back": store.hand_back,
    "snoozed": lambda chat_id: store.snooze(chat_id, datetime.now(UTC)),
    "woken": lambda chat_id: timeouts.wake_up(),
    "resolved": store.resolve,
    "reopened": store.reopen,
}
WAYS: dict[State, tuple[Event, ...]] = {
    "bot": (),
    "queued": ("person_requested",),
    "human": ("taken",),
    "snoozed": ("person_requested", "snoozed"),
    "resolved": ("resolved",),
}


@pytest.mark.parametrize("state", STATES)
def test_every_event_in_every_state_leads_where_the_table_says(
    chat: Chat, state: State, subtests: pytest.Subtests
) -> None:
    for event in get_args(Event):
        with subtests.test(event=event):
            check_event(store.start(locale="ru").chat_id, state, event)


def check_event(chat_id: str, state: State, event: Event) -> None:
    """Bring a new chat into a state and let the event happen to it."""
    by_customer = event in ("customer_message", "person_requested")
    with acting_as(ANNA):
        for step in WAYS[state]:
            ACTS[step](chat_id)
    before = store.get(chat_id)
    assert before.state == state
    expected = after(state, event, assigned=before.assignee is not None)
    by_time = event in ("queue_timed_out", "woken")
    with acting_as(VISITOR if by_customer else ANNA):
        if expected is None and not by_time:
            with pytest.raises(Conflict, match="chat_state"):
                ACTS[event](chat_id)
        else:
            ACTS[event](chat_id)
    reached = store.get(chat_id)
    assert reached.state == (expected or state)
    assert (reached.version > before.version) == (reached.state != state or reached.assignee != before.assignee)
    assert (reached.waiting_since is not None) == (reached.state == "queued")
    # The assistant may answer the next message in these states and in no other.
    posted = store.post(chat_id, "Ещё вопрос")
    said = store.answer(chat_id, posted.chat.version, "Ответ", turn_id="t", body={}, failed=False)
    assert (said is not None) == (reached.state in ("bot", "resolved"))


def test_a_snoozed_chat_wakes_with_whoever_has_it(chat: Chat) -> None:
    operator()
    with acting_as(ANNA):
        store.snooze(chat.chat_id, datetime.now(UTC) + timedelta(hours=1))
        assert timeouts.wake_up() == ()
    assert store.post(chat.chat_id, "Я ещё здесь").chat.state == "human"
    assert store.get(chat.chat_id).assignee == "anna"


def test_answers_that_failed_are_counted_until_one_does_not(chat: Chat) -> None:
    for expected, failed in ((1, True), (2, True), (0, False), (1, True)):
        version = store.post(chat.chat_id, "?").chat.version
        answered = store.answer(chat.chat_id, version, "…", turn_id="t", body={}, failed=failed)
        assert answered is not None
        assert answered.chat.failures == expected


async def test_watchers_are_told_of_changes_and_signals(chat: Chat) -> None:
    with ExitStack() as watchers:
        mine = watchers.enter_context(fanout.watching(chat.chat_id))
        all_of_them = watchers.enter_context(fanout.watching())
        with acting_as(Tenant("other", "x")):
            foreign = watchers.enter_context(fanout.watching(chat.chat_id))
        typing = Announcement("acme", chat.chat_id, "typing", "operator", "Анна")
        # Repeated, because an announcement before PostgreSQL listens is lost.
        while not (signals := (await all_of_them.wait(0.2))[1]):
            await asyncio.to_thread(fanout.announce, typing)
        assert set(signals) == {typing}
        await mine.wait(0)
        await asyncio.to_thread(store.post, chat.chat_id, "Привет")
        while chat.chat_id not in (await mine.wait(10))[0]:
            pass
        changed, signals = await foreign.wait(0.05)
        assert (changed - {chat.chat_id}, signals) == (frozenset(), ())


def test_a_person_is_exported_and_erased_with_all_chats(chat: Chat) -> None:
    webhook("chat.message")
    store.post(chat.chat_id, "Мой телефон 8 999 123-45-67")
    assert [one.chat_id for one in chat_people.of_person(VISITOR.subject, None)] == [chat.chat_id]
    assert len(outbox.of_chats([chat.chat_id])) == 1
    chat_people.erase(VISITOR.subject, None)
    assert chat_people.of_person(VISITOR.subject, None) == ()
    assert store.messages(chat.chat_id) == ()
    assert outbox.of_chats([chat.chat_id]) == ()


def test_a_webhook_has_so_many_deliveries_waiting(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST_WAITING", 2)
    webhook_id = webhook("chat.message")
    for text in ("Привет", "Есть вопрос", "Вы тут?"):
        store.post(chat.chat_id, text)
    assert len(outbox.latest()) == 2
    with pytest.raises(RateLimited):
        outbox.enqueue_test(webhook_id)
    (due,) = outbox.claim(10)
    outbox.settle(due)
    assert outbox.enqueue_test(webhook_id)


def test_deliveries_are_leased_retried_and_given_up(chat: Chat) -> None:
    webhook("chat.message")
    store.post(chat.chat_id, "Привет")
    now = datetime.now(UTC)
    (first,) = outbox.claim(10, now)
    assert outbox.claim(10, now) == ()
    now += outbox.LEASE
    for attempt, pause in enumerate(outbox.RETRY_SECONDS):
        (due,) = outbox.claim(10, now)
        assert (due.delivery_id, due.body, due.attempts) == (first.delivery_id, first.body, attempt)
        outbox.settle(due, fault="refused", now=now)
        assert outbox.claim(10, now) == ()
        now += timedelta(seconds=pause)
    (last,) = outbox.claim(10, now)
    outbox.settle(last, fault="refused", now=now)
    assert [one.state for one in outbox.latest()] == ["dead"]
    outbox.deliver_again(first.delivery_id)
    (again,) = outbox.claim(10)
    outbox.settle(again)
    assert [(one.delivery_id, one.state) for one in outbox.latest()] == [(first.delivery_id, "delivered")]


def test_a_customer_takes_no_id_of_an_operators_reply(chat: Chat) -> None:
    store.post(chat.chat_id, "Здравствуйте", client_id="crm-1")
    with acting_as(ANNA):
        replies = [
            store.reply(chat.chat_id, "Чем помочь?", seen=9, client_id=given) for given in ("crm-1", "crm-2") * 2
        ]
    posts = [store.post(chat.chat_id, "Вот чек", client_id=given) for given in ("crm-1", "crm-2", "crm-2")]
    assert [one.repeated for one in replies] == [False, False, True, True]
    assert [one.repeated for one in posts] == [True, False, True]
    assert [one.author for one in store.messages(chat.chat_id) if one.kind == "text"] == [
        *("customer", "operator", "operator", "customer"),
    ]

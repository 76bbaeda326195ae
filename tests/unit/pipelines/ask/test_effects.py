"""Effects of a turn, and their absence after the client has given up."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from components.language.texts import text
from components.models import calls
from components.turn import Reply, Turn
from pipelines.ask.contract import AskRequest
from pipelines.ask.effects import Attempt, ClientState
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.audit.search import Record, TurnQuery
from tenants.chats import conversation_memory
from tenants.chats.conversation_memory import PastTurn
from tenants.core.context import Tenant, acting_as
from tenants.knowledge import gaps
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tests.chats import all_tickets
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine

TALK = AskRequest(question="Где мой заказ?", session_id="s-1")


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    with acting_as(Tenant("acme", "anna", frozenset({"ask"}))):
        Registry().add("acme")
        yield


def handed_over(turn: Turn) -> Turn:
    """A turn that asks for a ticket and shows a gap."""
    return replace(turn, outcome="human_followup", reason="low_confidence", reply=Reply(text="Передаю."))


def recorded(ask: Ask) -> list[Record]:
    ask.recorder.close()
    return list(search.find(TurnQuery(), limit=10))


@pytest.mark.parametrize("client", ["awaited", "abandoned", "given_up"])
def test_what_follows_a_turn_depends_on_who_waits(client: ClientState) -> None:
    attempt = Attempt()
    if client == "abandoned":
        attempt.abandon()
    elif client == "given_up":
        assert attempt.give_up()
    ask = Ask(FakeEngine(handed_over))
    answer = ask.answer(TALK, attempt=attempt)
    records = recorded(ask)
    awaited = client == "awaited"
    assert (answer.handoff is not None) is awaited
    assert bool(all_tickets()) is awaited
    assert bool(conversation_memory.recall("s-1")) is awaited
    assert bool(gaps.all(None)) is awaited
    # The side that gives a turn up records that instead.
    assert len(records) == (0 if client == "given_up" else 1)


def test_a_turn_that_ends_after_an_erasure_is_not_remembered() -> None:
    def erased_meanwhile(turn: Turn) -> Turn:
        persons.erase(Person(subject="anna"))
        return handed_over(turn)

    Ask(FakeEngine(erased_meanwhile)).answer(TALK)
    assert conversation_memory.recall("s-1") == ()
    Ask(FakeEngine(handed_over)).answer(TALK)
    assert len(conversation_memory.recall("s-1")) == 1


def test_an_erasure_while_a_turn_is_being_remembered_covers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    remember = conversation_memory.remember

    def after_an_erasure(session_id: str, turn: PastTurn) -> None:
        persons.erase(Person(subject="anna"))
        remember(session_id, turn)

    monkeypatch.setattr(conversation_memory, "remember", after_an_erasure)
    Ask(FakeEngine(handed_over)).answer(TALK)
    assert conversation_memory.recall("s-1") == ()


@pytest.mark.parametrize("contact", [None, "anna@mail.example"])
def test_only_a_customer_who_can_be_answered_is_invited_to_write_more(contact: str | None) -> None:
    invited = text("outcomes.high_stakes.complaint", "ru")

    def complaint(turn: Turn) -> Turn:
        return replace(turn, outcome="high_stakes", reason="high_risk", reply=Reply(text=invited))

    answer = Ask(FakeEngine(complaint)).answer(AskRequest(question="Ваш мастер хамит", contact=contact))
    assert answer.answer.text.startswith(invited) is bool(contact)
    assert answer.handoff is not None


def test_an_attempt_is_decided_once() -> None:
    attempt = Attempt()
    assert attempt.settle() == "awaited"
    assert not attempt.give_up()
    attempt.abandon()
    assert attempt.settle() == "awaited"
    assert attempt.stop.is_set()


async def test_a_turn_out_of_time_is_recorded_once_and_opens_no_ticket() -> None:
    release = Event()

    def stall(turn: Turn) -> Turn:
        assert release.wait(30)
        return handed_over(turn)

    ask = Ask(FakeEngine(stall))
    runner = Runner(ask, workers=1, budget=0.05)
    answer = await runner.answer(TALK, "t-1", "k-1")
    assert (answer.outcome, answer.refusal_reason) == ("failed", "timeout")
    release.set()
    await asyncio.to_thread(runner.close)
    (record,) = await asyncio.to_thread(recorded, ask)
    assert (record.turn_id, record.outcome) == ("t-1", "failed")
    assert not all_tickets()
    assert not conversation_memory.recall("s-1")
    # The late answer is discarded: the key is free for another try.
    again = Runner(Ask(FakeEngine(handed_over)), workers=1, budget=30)
    assert (await again.answer(TALK, "t-3", "k-1")).turn_id == "t-3"
    again.close()


async def test_an_abandoned_turn_leaves_its_record_alone() -> None:
    begun = Event()

    def stall(turn: Turn) -> Turn:
        begun.set()
        assert calls.current().stop.wait(30)
        return handed_over(turn)

    ask = Ask(FakeEngine(stall))
    runner = Runner(ask, workers=1, budget=30)
    reading = (await runner.stream(TALK)).read()
    await anext(reading)
    assert await asyncio.to_thread(begun.wait, 30)
    await reading.aclose()
    # Closing waits for the turn, but the loop has to be free to notice that its reader has left.
    await asyncio.to_thread(runner.close)
    assert len(await asyncio.to_thread(recorded, ask)) == 1
    assert not all_tickets()
    assert not gaps.all(None)

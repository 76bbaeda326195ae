"""A question that was asked outside of chats goes to the desk, whatever it was asked through."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from components.turn import Reply, Turn
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from settings import Settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import outbox, store, tickets, timeouts
from tenants.chats.records import Chat
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tenants.desk import inbox
from tenants.desk.inbox import Filter
from tenants.privacy import chat_people, persons
from tenants.privacy.persons import Person
from tenants.storage import database
from tests.chats import webhook
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine

SHOP = Tenant("acme", "shop-backend", frozenset({"ask", "visit"}))
ASKED = "Верните деньги, мой телефон +7 916 123-45-67"


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    with acting_as(SHOP):
        Registry().add("acme")
        yield


def handed_over(turn: Turn) -> Turn:
    return replace(turn, outcome="high_stakes", reason="high_risk", reply=Reply(text="Передаю."))


def asked(**more: object) -> tuple[str, Chat]:
    """Return the caller's text about a handoff, and the chat that operators find by its number."""
    request = AskRequest.model_validate({"question": ASKED, "session_id": "s1", **more})
    answer = Ask(FakeEngine(handed_over)).answer(request)
    assert answer.handoff is not None
    (row,) = inbox.page("waiting", Filter(answer.handoff.ticket_id or "")).rows
    assert answer.handoff.reachable is (row.chat.contact is not None)
    assert row.last is not None
    return answer.answer.text, row.chat


def test_handoff_over_api_is_a_conversation_at_the_desk() -> None:
    webhook("chat.started", "chat.message", "chat.handoff")
    text_read, chat = asked(contact="anna@shop.example")
    assert (chat.state, chat.channel, chat.reason, chat.contact) == ("queued", "api", "high_risk", "anna@shop.example")
    question, reply, event = store.messages(chat.chat_id)
    assert (question.author, question.text) == ("customer", ASKED)
    assert (reply.author, reply.text, event.body["event"]) == ("bot", text_read, "queued")
    ticket = tickets.get(chat.ticket_id or "")
    assert ticket is not None
    assert (ticket.question, ticket.turn_id, ticket.session_id) == (ASKED, reply.turn_id, "s1")
    sent = [delivery.body for delivery in outbox.of_chats([chat.chat_id])]
    assert len([body for body in sent if "anna@shop.example" in body]) == 4


@pytest.mark.parametrize(
    ("more", "channel", "read"),
    [
        ({"contact": "+7 916 000-00-00"}, None, "Сотрудник свяжется с вами."),
        ({}, None, "Ответить вам здесь мы не сможем. Когда свяжетесь"),
        ({"anonymous": True}, "help@shop.example", ": help@shop.example."),
        ({"locale": "en"}, None, "We can't reply to you here."),
    ],
)
def test_caller_reads_whether_anybody_can_answer(more: dict[str, object], channel: str | None, read: str) -> None:
    if channel:
        policy.change(handoff_channel=channel)
    assert read in asked(**more)[0]


def test_personal_data_of_a_question_is_encrypted_and_found_without() -> None:
    chat = asked(contact="anna@shop.example")[1]
    assert [row.chat.chat_id for row in inbox.page("all", Filter("верните")).rows] == [chat.chat_id]
    with database.reading() as session:
        tables = ("chats", "chat_messages", "tickets")
        stored = str([list(session.execute(text(f"SELECT * FROM {name}"))) for name in tables])
    assert "[phone]" in stored
    assert "123-45-67" not in stored
    assert "anna@shop.example" not in stored


def test_question_from_outside_is_no_chat_of_a_visitor() -> None:
    chat = asked()[1]
    assert store.of_caller() == ()
    with pytest.raises(NotFound):
        store.own(chat.chat_id)


def test_question_from_outside_stays_queued_and_goes_with_its_person() -> None:
    chat, other = asked()[1], asked(session_id="s2")[1]
    assert timeouts.give_up_waiting(datetime.now(UTC) + timedelta(days=1), lambda _: "") == ()
    persons.erase(Person(session_id="s1"))
    assert [row.chat.chat_id for row in inbox.page("all").rows] == [other.chat_id]
    assert tickets.get(chat.ticket_id or "") is None
    assert chat_people.prune(datetime.now(UTC) + timedelta(days=100)) == 0
    assert chat_people.prune(datetime.now(UTC) + timedelta(days=400)) == 1


def test_contact_of_an_anonymous_caller_is_refused() -> None:
    with pytest.raises(ValueError, match="contact_of_nobody"):
        AskRequest(question=ASKED, anonymous=True, contact="anna@shop.example")

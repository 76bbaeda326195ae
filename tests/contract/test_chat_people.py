"""Chats of a person on every database: what an erasure and the end of their time take, and what they leave."""

from datetime import UTC, datetime, timedelta

import pytest

from settings import Settings, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import consents, store
from tenants.chats.change import changing
from tenants.chats.records import Chat, HandoffRequest
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.privacy import chat_people, erasures, persons
from tenants.privacy.persons import Person
from tests.chats import all_tickets

ANNA = Tenant("acme", "anna")
WANTED = HandoffRequest("user_request", question="Позовите человека")


def test_customers_of_two_sites_with_one_subject_are_different_people(records: Settings) -> None:
    Registry(records).add("acme")
    written = {}
    for site in ("brand-a", "brand-b"):
        with acting_as(Tenant("acme", "u:1", site=site)):
            written[site] = store.start(site=site, locale="ru").chat_id
            store.post(written[site], f"Я клиент {site}")
            consents.give("Согласен", site=site, address="192.0.2.1")
    with acting_as(ANNA):
        for refused in (persons.export, persons.erase):
            with pytest.raises(Invalid, match="person_at_several_sites"):
                refused(Person("u:1"))
        exported = persons.export(Person("u:1", site="brand-a"))
        assert [one["chat_id"] for one in exported["chats"] if isinstance(one, dict)] == [written["brand-a"]]
        assert [one["site"] for one in exported["consents"] if isinstance(one, dict)] == ["brand-a"]
        assert len(persons.export(Person("u:1", site="*"))["chats"]) == 2
        assert persons.erase(Person("u:1", site="brand-a")).chats == 1
    with acting_as(Tenant("acme", "u:1", site="brand-a")):
        store.start(site="brand-a", locale="ru")
        consents.give("Согласен", site="brand-a", address="192.0.2.1")
    (noted,) = erasures.read(records.data_dir / "erasures.jsonl")
    persons.erase_again(noted)
    with acting_as(ANNA):
        rest = persons.export(Person("u:1"))
        assert [one["chat_id"] for one in rest["chats"] if isinstance(one, dict)] == [written["brand-b"]]
        assert [one["site"] for one in rest["consents"] if isinstance(one, dict)] == ["brand-b"]


def wait_in_vain(chat: Chat) -> None:
    store.hand_over(chat.chat_id, WANTED)
    with changing(chat.chat_id) as change:
        change.become("queue_timed_out")


def test_a_chat_that_waited_too_long_is_kept_as_long_as_a_ticket(chat: Chat) -> None:
    policy.change(chat_days=30, queue_minutes=5)
    wait_in_vain(chat)
    days = get_settings().ticket_days
    assert chat_people.prune(datetime.now(UTC) + timedelta(days=days - 1)) == 0
    policy.change(chat_days=days + 10)
    assert chat_people.prune(datetime.now(UTC) + timedelta(days=days + 1)) == 0
    policy.change(chat_days=30)
    assert chat_people.prune(datetime.now(UTC) + timedelta(days=days + 1)) == 1
    assert all_tickets() == ()


def test_a_chat_that_waited_too_long_is_not_pruned(chat: Chat) -> None:
    policy.change(chat_days=30, queue_minutes=5)
    wait_in_vain(chat)
    left = store.get(chat.chat_id)
    assert (left.state, left.ticket_id is None) == ("bot", False)
    later = datetime.now(UTC) + timedelta(days=31)
    assert chat_people.prune(later) == 0
    assert len(all_tickets()) == 1
    with acting_as(ANNA):
        store.take(chat.chat_id)
        store.resolve(chat.chat_id)
    assert chat_people.prune(later) == 1


def test_a_ticket_of_two_chats_outlives_the_erasure_of_one(records: Settings) -> None:
    Registry(records).add("acme")
    with acting_as(Tenant("acme", "v:1", site="shop")):
        first, second = (store.start(site="shop", locale="ru").chat_id for _ in range(2))
        store.hand_over(first, WANTED)
        store.hand_over(second, HandoffRequest("user_request", question="Где мастер?"))
        ticket = store.get(second).ticket_id
    with acting_as(ANNA):
        assert persons.erase(Person(session_id=first)).chats == 1
        (left,) = all_tickets()
        assert (left.ticket_id, left.session_id, left.question) == (ticket, second, "")
        assert persons.erase(Person("v:1")).tickets == 1

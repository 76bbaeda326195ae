"""Verdicts on turns, on every database: one per person and turn, and none on unknown turns."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.audit.store import TurnOwner
from tenants.chats import store as chats
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tenants.desk import feedback
from tests.audits import AT, entry


@pytest.fixture(autouse=True)
def _turns(records: Settings) -> Iterator[None]:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)
    store.append([entry("t1", person="anna"), entry("t2", person="", session_id="")], records)
    store.append([entry("foreign", tenant_id="globex")], records)
    with acting_as(Tenant("acme", "anna")):
        yield


def stored() -> list[tuple[str, str, str, str | None]]:
    return sorted((verdict.turn_id, verdict.person, verdict.thumb, verdict.reason) for verdict in feedback.latest())


def test_a_second_verdict_replaces_the_first() -> None:
    feedback.give("t1", "anna", "down", "wrong", "Не так.")
    again = feedback.give("t1", "anna", "up")
    assert feedback.latest() == (again,)
    assert (again.thumb, again.reason, again.comment, again.session_id) == ("up", None, "", "s")
    feedback.give("t1", "bob", "down", "unclear")
    assert stored() == [("t1", "anna", "up", None), ("t1", "bob", "down", "unclear")]
    assert [verdict.person for verdict in feedback.latest("down")] == ["bob"]
    assert [verdict.person for verdict in feedback.latest(limit=1)] == ["bob"]


def test_a_verdict_on_an_anonymous_turn_stores_no_identity() -> None:
    feedback.give("t2", "anna", "down", "other")
    feedback.give("t2", "bob", "up")
    assert stored() == [("t2", "", "up", None)]


def test_only_a_turn_that_the_audit_holds_is_judged(records: Settings, subtests: pytest.Subtests) -> None:
    store.append([entry("erased", person="carl")], records)
    store.erase(TurnOwner("carl"), records)
    for turn_id in ("foreign", "nothing", "erased"):
        with subtests.test(turn_id=turn_id), pytest.raises(NotFound, match="turn_unknown"):
            feedback.give(turn_id, "anna", "up")
        assert stored() == []


def test_a_verdict_goes_with_its_turn(records: Settings) -> None:
    store.append([entry("t3", person="bob", at=AT + timedelta(days=2))], records)
    for turn_id in ("t1", "t2", "t3"):
        feedback.give(turn_id, "carl", "down")
    store.prune(AT + timedelta(days=1), records)
    assert stored() == [("t3", "carl", "down", None)]
    store.erase(TurnOwner("bob"), records)
    assert stored() == []


def test_a_visitor_judges_answers_of_their_own_chats_only(records: Settings) -> None:
    with acting_as(Tenant("acme", "u:1", site="brand-a")):
        chat = chats.start(site="brand-a")
        store.append([entry("asked", person="u1", session_id=chat.chat_id)], records)
        feedback.give("asked", "u1", "up")
    for stranger in (Tenant("acme", "u:1", site="brand-b"), Tenant("acme", "v:2", site="brand-a")):
        with acting_as(stranger), pytest.raises(NotFound, match="turn_unknown"):
            feedback.give("asked", "u1", "down")
    assert stored() == [("asked", "u1", "up", None)]

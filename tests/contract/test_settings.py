"""Settings on every database: changes are recorded, and concurrent edits are noticed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from tenants.accounts import policy, settings_history
from tenants.accounts.hours import Hours
from tenants.chats import sites, store
from tenants.chats.records import HandoffRequest
from tenants.chats.tables import ChatRow, TicketRow
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Conflict, Invalid, NotFound
from tenants.privacy import chat_people
from tenants.storage import database

pytestmark = pytest.mark.usefixtures("acme")

ANNA = Tenant("acme", "anna")
OTHER = Tenant("globex", "boris")


def test_a_change_of_the_policy_is_written_down_with_who_when_and_what() -> None:
    policy.change(top_k=7, name="Ромашка")
    policy.change(top_k=7)
    (one,) = settings_history.latest()
    assert (one.by, one.area, one.act, one.about) == ("anna", "policy", "changed", "")
    assert (one.before, one.after) == ({"top_k": 5, "name": "acme"}, {"top_k": 7, "name": "Ромашка"})
    assert datetime.now(UTC) - one.at < timedelta(minutes=5)
    with acting_as(OTHER):
        assert settings_history.latest() == ()
    assert settings_history.latest("site") == ()


def test_who_saves_what_has_changed_meanwhile_is_told_and_changes_nothing() -> None:
    seen = policy.version_of(policy.current())
    policy.change(top_k=7)
    with pytest.raises(Conflict, match="settings_changed"):
        policy.apply({"top_k": 9}, seen)
    assert policy.current().top_k == 7
    assert policy.apply({"top_k": 9}, policy.version_of(policy.current())).top_k == 9


def test_large_changes_have_room_for_a_day_and_small_ones_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_history, "_A_DAY", 20_000)
    policy.change(approved_offers={"refund": "а" * 1_500})
    policy.change(approved_offers={"refund": "б" * 1_500})
    assert policy.current().approved_offers == {"refund": "б" * 1_500}
    policy.change(top_k=7)
    small, without_values, large = settings_history.latest()
    assert (small.after, without_values.after) == ({"top_k": 7}, {})
    assert large.after
    monkeypatch.setattr(settings_history, "_MOST_LISTED", 5_000)
    assert settings_history.latest() == (small, without_values)
    with acting_as(OTHER):
        policy.change(approved_offers={"refund": "в" * 1_500})


def test_site_changes_are_partial_and_never_record_secrets() -> None:
    site = sites.add("Магазин", ["https://shop.example"], identity_required=True)
    seen = sites.version_of(site)
    changed = sites.update(site.key, version=seen, config={"welcome": "Здравствуйте!"})
    assert (changed.name, changed.origins, changed.config.welcome) == ("Магазин", site.origins, "Здравствуйте!")
    with pytest.raises(Conflict, match="settings_changed"):
        sites.update(site.key, version=seen, name="Другой")
    sites.set_hours(site.key, Hours.model_validate({"zone": "UTC", "week": {"mon": ["09:00-18:00"]}}))
    sites.rotate(site.key, identity=True)
    noted = settings_history.latest("site")
    assert [one.act for one in noted] == ["rotated", "changed", "changed", "added"]
    written = str([(one.before, one.after) for one in noted])
    secrets = {site.identity_secret, sites.get(site.key).identity_secret, *sites.get(site.key).secrets}
    assert not [one for one in secrets if one and one in written]
    with acting_as(OTHER), pytest.raises(NotFound, match="site_unknown"):
        sites.update(site.key, name="Чужой")


def test_a_site_refuses_what_does_not_fit_and_stays_as_it_was(subtests: pytest.Subtests) -> None:
    site = sites.add("Магазин", [])
    cases: tuple[tuple[Callable[[str], object], str], ...] = (
        (lambda key: sites.update(key, name=" "), "site_invalid"),
        (lambda key: sites.update(key, name="я" * 201), "site_invalid"),
        (lambda key: sites.update(key, origins=["https://shop.example/path"]), "origin_invalid"),
        (lambda key: sites.update(key, config={"suggested": ["?"] * 7}), "site_invalid"),
        (lambda key: sites.update(key, config={"consent": {"text": ""}}), "site_invalid"),
        (lambda key: sites.update(key, config={"unknown": 1}), "site_invalid"),
    )
    for act, code in cases:
        with subtests.test(code=code), pytest.raises(Invalid, match=code):
            act(site.key)
        assert sites.get(site.key) == site
        assert len(settings_history.latest("site")) == 1


def test_chats_that_are_over_go_when_their_days_are_over() -> None:
    with acting_as(Tenant("acme", "visitor")):
        old, waiting, young = store.start(), store.start(), store.start()
        for chat in (old, waiting):
            store.post(chat.chat_id, "Где заказ?")
            store.hand_over(chat.chat_id, HandoffRequest("user_request", question="?"))
    store.resolve(old.chat_id)
    now = datetime.now(UTC)
    with database.writing() as session:
        earlier = now - timedelta(days=40)
        session.execute(
            update(ChatRow).where(ChatRow.chat_id.in_((old.chat_id, waiting.chat_id))).values(updated_at=earlier)
        )
    assert chat_people.prune(now) == 0
    policy.change(chat_days=41)
    assert chat_people.prune(now) == 0
    policy.change(chat_days=39)
    with acting_as(OTHER):
        assert chat_people.prune(now) == 0
    assert chat_people.prune(now) == 1
    with pytest.raises(NotFound, match="chat_unknown"):
        store.get(old.chat_id)
    assert store.get(waiting.chat_id).state == "queued"
    assert store.get(young.chat_id).state == "bot"
    with database.reading() as session:
        assert session.scalars(select(TicketRow.chat_id)).all() == [waiting.chat_id]

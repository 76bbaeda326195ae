"""Tokens that were issued are known, replaced without a gap, and refused when they should be."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta, tzinfo
from threading import Event, Timer
from time import time
from typing import Self

import pytest

from settings import Settings
from tenants.access import issued_tokens, revocations, token_uses, tokens
from tenants.access.revocations import Kind
from tenants.access.tokens import TokenVerifier
from tenants.accounts import settings_history
from tenants.accounts.registry import Registry
from tenants.core.batches import batches
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Conflict, Invalid, NotFound, TryAgain
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tenants.storage import database
from tests.installations import refused

ANNA = Tenant("acme", "anna")
HOUR = 3_600


@pytest.fixture(autouse=True)
def _tenants(records: Settings) -> None:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)


def test_what_is_known_of_a_token_is_what_it_says_and_never_the_token(records: Settings) -> None:
    with acting_as(ANNA):
        known, raw = issued_tokens.issue(subject="crm", scopes=["ask", "ingest"], ttl_seconds=HOUR)
        assert issued_tokens.all() == (known,)
    caller = TokenVerifier(records).verify(raw)
    assert (caller.token_id, caller.subject, caller.scopes) == (known.token_id, "crm", frozenset(known.scopes))
    assert (known.state, known.issued_by, known.expires_at - known.issued_at) == ("valid", "anna", timedelta(hours=1))
    assert known.issued_at.timestamp() == pytest.approx(caller.issued_at, abs=1)
    with acting_as(ANNA):
        noted = settings_history.latest("token")
    assert [(one.act, one.about) for one in noted] == [("added", known.token_id)]
    assert raw not in str(noted)


def test_a_token_is_replaced_and_both_work_until_the_grace_is_over(records: Settings) -> None:
    with acting_as(ANNA):
        old, first = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
        new, second = issued_tokens.rotate(old.token_id, grace=timedelta(minutes=10))
        states = {one.token_id: one.state for one in issued_tokens.all()}
    assert states == {old.token_id: "ending", new.token_id: "valid"}
    assert (new.subject, new.scopes, new.expires_at - new.issued_at) == ("crm", ("ask",), timedelta(hours=1))
    assert [refused(raw, records) for raw in (first, second)] == [False, False]
    with acting_as(ANNA):
        with pytest.raises(Conflict, match="token_over"):
            issued_tokens.rotate(old.token_id)
        third, _ = issued_tokens.rotate(new.token_id, grace=timedelta())
        assert [issued_tokens.get(one.token_id).state for one in (new, third)] == ["revoked", "valid"]
    assert [refused(raw, records) for raw in (first, second)] == [False, True]
    with acting_as(ANNA):
        issued_tokens.revoke(old.token_id)
    assert refused(first, records)


def test_the_grace_of_a_token_ends_by_itself(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with acting_as(ANNA):
        old, raw = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
        issued_tokens.rotate(old.token_id, grace=timedelta(minutes=10))
    assert not refused(raw, records)
    later = (datetime.now(UTC) + timedelta(minutes=11)).timestamp()
    monkeypatch.setattr("tenants.access.revocations.time", lambda: later)
    assert refused(raw, records)


def test_an_erased_person_is_in_no_recorded_change_of_tokens(records: Settings) -> None:
    with acting_as(ANNA):
        issued_tokens.issue(subject="telegram:123", scopes=["ask"], ttl_seconds=HOUR)
        revocations.revoke("subject", "telegram:123")
        issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
        persons.erase(Person(subject="telegram:123"))
        noted = settings_history.latest("token")
        assert "telegram:123" not in repr(noted)
        assert [one.act for one in noted] == ["added", "revoked", "added"]
        assert noted[0].after["subject"] == "crm"


def test_what_revokes_many_tokens_shows_on_each(records: Settings) -> None:
    with acting_as(ANNA):
        crm, _ = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
        site, _ = issued_tokens.issue(subject="site", scopes=["ask"], ttl_seconds=HOUR)
        revocations.revoke("subject", "crm")
        assert [issued_tokens.get(one.token_id).state for one in (crm, site)] == ["revoked", "valid"]
        assert [one.subject for one in issued_tokens.all()] == ["site", "crm"]
        revocations.revoke("tenant")
        assert issued_tokens.get(site.token_id).state == "revoked"


def test_revocations_have_an_end_but_not_that_of_all_tokens(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "MAX_REVOCATIONS", 2)
    with acting_as(Tenant("acme", "admin")):
        first = revocations.revoke("token", "leaked")
        revocations.revoke("subject", "anna")
        with pytest.raises(Invalid, match="revocations_too_many"):
            revocations.revoke("token", "another")
        revocations.revoke("tenant")
        noted = len(settings_history.latest())
        assert revocations.revoke("token", "leaked") == first
        assert len(settings_history.latest()) == noted
        assert {one.kind for one in revocations.all()} == {"token", "subject", "tenant"}


@pytest.mark.parametrize("kind", ["subject", "tenant"])
def test_tokens_of_a_replica_whose_clock_is_ahead_are_revoked(
    records: Settings, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    """A token that seemed to be issued 20 s after the revocation stayed valid for its lifetime, up to a year."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(seconds=20)

    with acting_as(ANNA):
        monkeypatch.setattr(tokens, "time", lambda: time() + 20)
        monkeypatch.setattr(issued_tokens, "datetime", Ahead)
        _, raw = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
        monkeypatch.undo()
        revocations.revoke(kind, "crm" if kind == "subject" else "")
    assert refused(raw, records)


def test_a_rotation_takes_no_simultaneous_revocation_back(records: Settings) -> None:
    """Of twelve tokens that were revoked and rotated at once, nine went on for a day."""
    get, patch = issued_tokens.get, pytest.MonkeyPatch()

    def get_and_change(token_id: str) -> issued_tokens.IssuedToken:
        found = get(token_id)
        patch.undo()
        meanwhile(token_id)
        return found

    for meanwhile in (issued_tokens.revoke, issued_tokens.rotate):
        with acting_as(ANNA):
            old, raw = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
            patch.setattr(issued_tokens, "get", get_and_change)
            with pytest.raises(Conflict, match="token_over"):
                issued_tokens.rotate(old.token_id)
        assert refused(raw, records) is (meanwhile is issued_tokens.revoke)
    with acting_as(ANNA):
        issued_tokens.revoke(old.token_id)
        revocations.revoke("token", old.token_id, at=datetime.now(UTC) + timedelta(days=1))
    assert refused(raw, records)


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_a_token_of_another_tenant_is_unknown(records: Settings) -> None:
    with acting_as(Tenant("globex", "anna")):
        foreign, _ = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
    with acting_as(ANNA):
        assert issued_tokens.all() == ()
        for act in (issued_tokens.get, issued_tokens.rotate, issued_tokens.revoke):
            with pytest.raises(NotFound, match="token_unknown"):
                act(foreign.token_id)


def test_the_last_use_of_a_token_is_noted_and_of_an_unknown_one_is_not(records: Settings) -> None:
    with acting_as(ANNA):
        known, raw = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
    caller = TokenVerifier(records).verify(raw)
    for one in (caller, Tenant("acme", "crm", token_id="of-a-provider", issued_at=time())):
        with acting_as(one):
            token_uses.note(one)
            asyncio.run(revocations.check(one))
    with acting_as(ANNA):
        used_at = issued_tokens.get(known.token_id).used_at
    assert used_at is not None
    assert abs(datetime.now(UTC) - used_at) < timedelta(minutes=5)


def test_who_asks_does_not_fail_because_a_use_cannot_be_noted(
    records: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with acting_as(ANNA):
        _, raw = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
    caller = TokenVerifier(records).verify(raw)

    def away() -> None:
        raise TryAgain

    monkeypatch.setattr(database, "writing", away)
    token_uses.note(caller)
    with acting_as(caller):
        asyncio.run(revocations.check(caller))


def test_a_list_waits_for_uses_that_are_being_written(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with acting_as(ANNA):
        _, raw = issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=HOUR)
    token_uses.note(TokenVerifier(records).verify(raw))
    taken, go_on = Event(), Event()

    def slowly(used: set[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
        taken.set()
        assert go_on.wait(10)
        yield from batches(used)

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(token_uses, "batches", slowly)
        writing = pool.submit(copy_context().run, token_uses.write)
        assert taken.wait(10)
        listing = pool.submit(copy_context().run, _listed_as_anna)
        Timer(0.2, go_on.set).start()
        assert listing.result(10)[0].used_at is not None
        writing.result(10)


def _listed_as_anna() -> tuple[issued_tokens.IssuedToken, ...]:
    with acting_as(ANNA):
        return issued_tokens.all()

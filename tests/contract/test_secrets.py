"""Secrets of tenants are encrypted at rest, with key rotation; tokens can be revoked before they expire."""

import json

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from settings import Settings, get_settings
from tenants.access import keys, revocations
from tenants.access.tokens import TokenVerifier, identify, issue
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.chats import sites, webhooks
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.errors import InternalFault, Invalid, Unauthenticated
from tenants.knowledge import tools
from tenants.privacy import resealing
from tenants.storage import database, sealed
from tests.chats import all_tickets, handed_over
from tests.installations import refused

ANNA = Tenant("acme", "anna")
WORD = "canary-of-a-header"
TOOL = {
    "name": "orders",
    "title": "Orders",
    "description": "Where an order is",
    "url": "https://shop.example/orders",
    "parameters": {"properties": {"number": {"type": "string"}}},
    "headers": {"x-key": WORD},
}


def stored(column: str, table: str) -> str:
    with database.across_tenants() as session:
        return "".join(map(str, session.execute(text(f"SELECT {column} FROM {table}")).scalars()))


def fill() -> sites.Site:
    Registry().add("acme")
    with acting_as(ANNA):
        tools.put(tools.parsed(TOOL))
        webhooks.add("https://shop.example/hook")
        handed_over("t", "user_request", WORD)
        return sites.add("Shop", ["https://shop.example"], identified=True)


def test_no_secret_of_a_tenant_is_in_the_database_as_it_is(records: Settings) -> None:
    site = fill()
    with acting_as(ANNA):
        (webhook,) = webhooks.own()
        (tool,) = tools.all()
        assert tool.headers == {"x-key": SecretStr(WORD)}
        assert sites.get(site.key) == site
    assert WORD not in stored("headers", "tools")
    assert webhook.secrets[0] not in stored("secrets", "webhooks")
    assert site.secrets[0] not in stored("secrets", "sites")
    assert str(site.identity_secret) not in stored("identity_secret", "sites")


def test_every_column_for_a_secret_is_encrypted() -> None:
    """`password` is a hash of argon2id, and sessions have digests of their secrets."""
    secret = {"secret", "secrets", "headers", "identity_secret"}
    tables = Base.metadata.sorted_tables
    named = {(table.name, column) for table in tables for column in secret.intersection(table.columns.keys())}
    assert named
    assert named <= {(table.name, column) for table in tables for column in resealing.columns(table)}


def test_resealing_uses_the_new_key_while_the_old_one_still_opens(records: Settings) -> None:
    site = fill()
    before = stored("question", "tickets"), stored("headers", "tools"), stored("secrets", "sites")
    own = records.data_dir / "keys" / "data.key"
    old_key = own.read_text()
    sealed.renew_own_key()
    with acting_as(ANNA):
        assert all_tickets()[0].question == WORD
    assert resealing.reseal() == 7
    after = stored("question", "tickets"), stored("headers", "tools"), stored("secrets", "sites")
    assert not set(before) & set(after)
    assert own.read_text().split(",")[1] == old_key
    own.write_text(own.read_text().split(",")[0])
    with acting_as(ANNA):
        sites.expire()
        assert all_tickets()[0].question == WORD
        assert sites.get(site.key) == site
    own.write_text(old_key)
    sealed.forget_keys()
    with acting_as(ANNA), pytest.raises(InternalFault, match="data_key_wrong"):
        all_tickets()


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_secrets_of_the_environment_are_changed_there(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_DATA_KEYS", "one")
    get_settings.cache_clear()
    fill()
    with pytest.raises(Invalid, match="data_keys_given"):
        sealed.renew_own_key()
    monkeypatch.setenv("OPORA_DATA_KEYS", "two,one")
    get_settings.cache_clear()
    assert resealing.reseal() == 7
    monkeypatch.setenv("OPORA_DATA_KEYS", "two")
    get_settings.cache_clear()
    with acting_as(ANNA):
        assert all_tickets()[0].question == WORD


def token(settings: Settings, subject: str = "anna") -> str:
    return issue(settings, "acme", scopes=SCOPES, subject=subject, ttl_seconds=600)


def test_a_token_a_subject_or_a_tenant_is_refused_and_nobody_else(records: Settings) -> None:
    Registry().add("acme")
    Registry().add("globex")
    first, second, bobs = token(records), token(records), token(records, "bob")
    foreign = issue(records, "globex", scopes=SCOPES, subject="anna", ttl_seconds=600)
    tenant_id, token_id = identify(first, records)
    assert (tenant_id, token_id) == ("acme", TokenVerifier(records).verify(first).token_id)
    with acting_as(ANNA):
        revocations.revoke("token", token_id)
    assert [refused(raw, records) for raw in (first, second, bobs, foreign)] == [True, False, False, False]
    with acting_as(ANNA):
        revocations.revoke("subject", "anna")
    assert [refused(raw, records) for raw in (first, second, bobs, foreign)] == [True, True, False, False]
    with acting_as(ANNA):
        revocations.revoke("tenant")
        assert ("tenant", "") in {(one.kind, one.value) for one in revocations.all()}
        assert len(revocations.all()) == 3
    assert [refused(raw, records) for raw in (bobs, foreign)] == [True, False]


def test_a_token_issued_later_is_good(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    Registry().add("acme")
    with acting_as(ANNA):
        moment = revocations.revoke("subject", "anna").until.timestamp()
    monkeypatch.setattr("tenants.access.tokens.time", lambda: moment + 2)
    assert not refused(token(records), records)


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_what_cannot_be_revoked(records: Settings) -> None:
    Registry().add("acme")
    with acting_as(ANNA):
        for kind, value in (("token", ""), ("subject", ""), ("tenant", "x"), ("subject", "x" * 256)):
            with pytest.raises(Invalid, match="revocation_invalid"):
                revocations.revoke(kind, value)  # type: ignore[arg-type]
    for raw in ("", "x", "a.b.c", token(records)[:-2]):
        with pytest.raises(Unauthenticated, match="token_invalid"):
            identify(raw, records)


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_keys_that_sign_are_rotated_and_those_before_expire(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    Registry().add("acme")
    verifier = TokenVerifier(records)
    before = token(records)
    verifier.verify(before)
    kid = keys.rotate(records, overlap_seconds=0)
    with pytest.raises(Unauthenticated):
        TokenVerifier(records).verify(before)
    assert json.loads(keys.own_keys_file(records).read_text())["keys"][-1]["kid"] == kid
    assert TokenVerifier(records).verify(token(records)) == Tenant("acme", "anna", SCOPES)

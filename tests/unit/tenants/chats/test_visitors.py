"""Visitor tokens: renewed for returning visitors, and affected by a rotation of the site's secret."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import time

import jwt
import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.chats import sites, visitors
from tenants.chats.sites import SECRET_AGE, Site
from tenants.chats.visitors import RETURN_SECONDS, Visitors
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound, Unauthenticated

SHOP = "https://shop.example"


@pytest.fixture
def site(installation: Settings) -> Iterator[Site]:
    """A site of a tenant, with its admin in context."""
    Registry().add("acme")
    with acting_as(Tenant("acme", "admin")):
        yield sites.add("Магазин", [SHOP])


@pytest.fixture
def gate(installation: Settings) -> Visitors:
    return Visitors(installation)


def token(gate: Visitors, site: Site, visitor: str | None = None) -> str:
    return gate.begin(site, identity=None, visitor=visitor).token


async def test_after_a_rotation_tokens_of_before_are_good_until_they_expire(site: Site, gate: Visitors) -> None:
    old = token(gate, site)
    rotated = sites.rotate(site.key)
    new = token(gate, rotated)
    assert rotated.secrets == (rotated.secrets[0], *site.secrets)
    for raw in (old, new):
        assert (await gate.verify(raw)).site == site.key
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(new, site.secrets[0], ["HS256"], audience="opora-visit")
    # A visitor who returns with the old token stays the same visitor, under the new secret.
    renewed = gate.begin(rotated, identity=None, visitor=old)
    assert renewed.subject == (await gate.verify(old)).subject
    jwt.decode(renewed.token, rotated.secrets[0], ["HS256"], audience="opora-visit")


async def test_a_secret_that_has_leaked_is_revoked_at_once(site: Site, gate: Visitors) -> None:
    old = token(gate, site)
    rotated = sites.rotate(site.key, revoke=True)
    with pytest.raises(Unauthenticated, match="token_invalid"):
        await gate.verify(old)
    assert gate.begin(rotated, identity=None, visitor=old).subject not in old
    assert rotated.secrets != site.secrets


async def test_only_the_last_secrets_are_good(site: Site, gate: Visitors) -> None:
    first = token(gate, site)
    for _ in range(sites.MAX_SECRETS - 1):
        sites.rotate(site.key)
    assert (await gate.verify(first)).tenant_id == "acme"
    sites.rotate(site.key)
    with pytest.raises(Unauthenticated, match="token_invalid"):
        await gate.verify(first)


def test_a_secret_is_replaced_when_it_is_old(site: Site) -> None:
    assert sites.renew(site) == site
    renewed = sites.renew(site, datetime.now(UTC) + SECRET_AGE)
    assert (len(renewed.secrets), renewed.secrets[1]) == (2, site.secrets[0])


async def test_a_token_ends_after_its_minutes_and_names_its_visitor_for_a_month(
    site: Site, gate: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = time() - RETURN_SECONDS
    monkeypatch.setattr(visitors, "time", lambda: begun)
    old = gate.begin(site, identity=None, visitor=None)
    monkeypatch.undo()
    with pytest.raises(Unauthenticated, match="token_expired"):
        await gate.verify(old.token)
    assert gate.begin(site, identity=None, visitor=old.token).subject == old.subject
    monkeypatch.setattr(visitors, "time", lambda: begun - timedelta(days=1).total_seconds())
    older = gate.begin(site, identity=None, visitor=None)
    monkeypatch.undo()
    assert gate.begin(site, identity=None, visitor=older.token).subject != older.subject


async def test_the_tokens_of_a_site_go_with_it(site: Site, gate: Visitors) -> None:
    raw = token(gate, site)
    sites.remove(site.key)
    with pytest.raises(Unauthenticated, match="token_invalid"):
        await gate.verify(raw)
    with pytest.raises(NotFound):
        sites.get(site.key)


def test_an_identity_secret_is_replaced_when_that_is_asked_for(installation: Settings, gate: Visitors) -> None:
    Registry().add("acme")
    with acting_as(Tenant("acme", "admin")):
        known = sites.add("Кабинет", [SHOP], identified=True)
        assert sites.rotate(known.key).identity_secret == known.identity_secret
        rotated = sites.rotate(known.key, identity=True)
    assert known.identity_secret
    signed = jwt.encode({"aud": "opora", "sub": "7", "exp": time() + 60}, known.identity_secret, "HS256")
    assert gate.begin(known, identity=signed, visitor=None).subject == "u:7"
    with pytest.raises(Unauthenticated, match="identity_invalid"):
        gate.begin(rotated, identity=signed, visitor=None)

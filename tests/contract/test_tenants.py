"""Administration of tenants: suspension, counts, and the invitation of a first admin."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from settings import Settings
from tenants.access import issued_tokens
from tenants.accounts import registry, settings_history
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.chats import store as chats
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.errors import Busy, Conflict, Forbidden, NotFound
from tenants.desk import invitations, operators, replies
from tenants.insight import totals
from tenants.insight.totals import TenantSize
from tenants.privacy import retention
from tests.chats import webhook
from tests.desk import PASSWORD

ANNA = Tenant("acme", "anna")


@pytest.fixture(autouse=True)
def _tenants(records: Settings) -> None:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)


def test_nobody_of_a_suspended_tenant_is_let_in(records: Settings) -> None:
    first, last = (registry.suspend("acme", "root") for _ in range(2))
    registry.resume("acme", "root", since=first)
    assert Registry().get("acme").suspended_at == last
    with acting_as(ANNA), pytest.raises(Forbidden, match="tenant_suspended"):
        asyncio.run(registry.admitted())
    with acting_as(Tenant("globex", "anna")):
        assert asyncio.run(registry.admitted()).tenant_id == "globex"
    registry.resume("acme", "root")
    with acting_as(ANNA):
        assert asyncio.run(registry.admitted()).tenant_id == "acme"
        noted = [(one.by, one.area, dict(one.after)) for one in settings_history.latest()]
    assert noted == [("root", "tenant", {"suspended": False}), ("root", "tenant", {"suspended": True})]
    with pytest.raises(NotFound):
        registry.suspend("nobody", "root")


def test_tenants_are_counted_each_by_itself(records: Settings) -> None:
    with acting_as(ANNA):
        operators.add("anna", PASSWORD, role="admin")
        chats.start()
        chats.start()
    sizes = totals.by_tenant()
    assert (sizes["acme"].operators, sizes["acme"].chats, sizes["acme"].documents) == (1, 2, 0)
    assert sizes["globex"] == TenantSize()
    assert totals.of("acme") == sizes["acme"]
    assert totals.by_tenant("globex") == {"globex": TenantSize()}


def test_an_invitation_works_once_for_a_day_and_while_nobody_is_there(records: Settings) -> None:
    old, secret = invitations.invite("acme"), invitations.invite("acme")
    with pytest.raises(NotFound, match="invitation_used"):
        invitations.check(old)
    assert invitations.check(secret).tenant_id == "acme"
    with acting_as(Tenant("globex", "bob")):
        operators.add("bob", PASSWORD, role="operator")
    admin = invitations.accept(secret, login="bob", password=PASSWORD, name="Боб")
    assert (admin.tenant_id, admin.role, admin.name) == ("acme", "admin", "Боб")
    with pytest.raises(NotFound, match="invitation_used"):
        invitations.accept(secret, login="eve", password=PASSWORD, name="")
    for tenant_id in ("acme", "globex"):
        with pytest.raises(Conflict, match="tenant_in_use"):
            invitations.invite(tenant_id)
    with pytest.raises(NotFound, match="tenant_unknown"):
        invitations.invite("nobody")


@pytest.mark.parametrize(
    "fill",
    [
        lambda: replies.add("Приветствие", "Здравствуйте"),
        lambda: sites.add("Лавка", []),
        lambda: issued_tokens.issue(subject="crm", scopes=["ask"], ttl_seconds=60),
        lambda: webhook("chat.message"),
    ],
    ids=["reply", "site", "token", "webhook"],
)
def test_nobody_is_invited_into_a_tenant_with_any_data(records: Settings, fill: Callable[[], object]) -> None:
    with acting_as(Tenant("acme", "crm", SCOPES)):
        fill()
    with pytest.raises(Conflict, match="tenant_in_use"):
        invitations.invite("acme")


def test_invitation_survives_a_busy_moment(records: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = invitations.invite("acme")

    def busy(_password: str) -> str:
        raise Busy

    with monkeypatch.context() as patched:
        patched.setattr(operators, "_hash", busy)
        with pytest.raises(Busy):
            invitations.accept(secret, login="anna", password=PASSWORD, name="")
    assert invitations.accept(secret, login="anna", password=PASSWORD, name="").tenant_id == "acme"


def test_an_invitation_of_yesterday_is_none(records: Settings) -> None:
    secret = invitations.invite("acme")
    retention.prune(datetime.now(UTC) + timedelta(hours=25))
    with pytest.raises(NotFound, match="invitation_used"):
        invitations.check(secret)

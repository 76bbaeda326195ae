"""Password hashing: a tenant that changes passwords all the time does not keep others from signing in."""

import asyncio
from collections.abc import Iterator
from threading import Event

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, OporaError
from tenants.desk import operators
from tests.clocks import everything_waits
from tests.desk import PASSWORD
from tests.unit.pipelines.test_pools import TenantFromHeader, refused
from ui.api import operators as operators_api
from ui.passwords import Passwords

ATTACKER, VICTIM = "mallory", "acme"
REQUESTS = 30


@pytest.fixture
def staff(installation: Settings) -> None:
    for tenant_id in (ATTACKER, VICTIM):
        Registry(installation).add(tenant_id)
        with acting_as(Tenant(tenant_id, "admin")):
            operators.add("anna", PASSWORD, role="admin")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Passwords of `mallory` are hashed once this is set."""
    go, hash_quickly = Event(), operators._hash

    def hash_slowly(password: str) -> str:
        assert go.wait(60)
        return hash_quickly(password)

    monkeypatch.setattr(operators, "_hash", hash_slowly)
    yield go
    go.set()


async def test_sign_ins_are_served_beside_changes_of_passwords(staff: None, slow: Event) -> None:
    passwords = Passwords()
    app = FastAPI(exception_handlers={OporaError: refused})
    app.include_router(operators_api.router(passwords))
    async with httpx.AsyncClient(transport=ASGITransport(TenantFromHeader(app)), base_url="http://test") as client:

        def change() -> "asyncio.Task[httpx.Response]":
            body, headers = {"password": PASSWORD}, {"x-tenant": ATTACKER}
            return asyncio.create_task(client.put("/operators/anna/password", json=body, headers=headers))

        changes = [change() for _ in range(REQUESTS)]
        await everything_waits()
        for _ in range(3):
            signing_in = passwords.sign_in("10.0.0.1", lambda: operators.authenticate("anna", PASSWORD, VICTIM))
            assert (await asyncio.wait_for(signing_in, 30)).tenant_id == VICTIM
        assert (await asyncio.wait_for(client.get("/operators", headers={"x-tenant": VICTIM}), 30)).status_code == 200
        slow.set()
        statuses = [(await change).status_code for change in changes]
    assert sorted(statuses) == [204] * 2 + [503] * (REQUESTS - 2)


async def test_changes_of_one_tenant_leave_others_theirs(staff: None) -> None:
    passwords, go = Passwords(), Event()

    def change(tenant_id: str) -> "asyncio.Task[bool]":
        with acting_as(Tenant(tenant_id, "anna")):
            return asyncio.create_task(passwords.change(lambda: go.wait(60) or tenant_id == VICTIM))

    theirs = [change(ATTACKER) for _ in range(3)]
    await everything_waits()
    own = change(VICTIM)
    with pytest.raises(Busy):
        await theirs[2]
    go.set()
    assert await asyncio.gather(own, *theirs[:2]) == [True] * 3


async def test_sign_ins_from_many_addresses_keep_no_other_network_out() -> None:
    passwords, go, done = Passwords(), Event(), []

    def sign_in(address: str) -> "asyncio.Task[None]":
        def work() -> None:
            assert go.wait(60)
            done.append(address)

        return asyncio.create_task(passwords.sign_in(address, work))

    guesses = [sign_in(f"10.0.{network}.{host}") for network in range(3) for host in range(4) for _ in range(4)]
    guesses += [sign_in(f"2001:db8:7:{host:x}::/64") for host in range(8)]
    await everything_waits()
    own = sign_in("192.0.2.1")
    await everything_waits()
    go.set()
    await asyncio.wait_for(asyncio.gather(own, *guesses), 60)
    assert done.index("192.0.2.1") <= 5  # after the one at work, and one of each network

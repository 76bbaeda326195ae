"""Spending of a tenant is counted to the cent under concurrency, and never on another tenant's account."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from settings import get_settings
from tenants.access import spending
from tenants.accounts import policy
from tenants.core.context import Tenant, acting_as

pytestmark = pytest.mark.usefixtures("acme")


def test_concurrent_spending_is_all_counted() -> None:
    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(copy_context().run, spending.spend, 0.25) for _ in range(12)]:
            work.result()
    assert spending.spent() == 3.0
    with acting_as(Tenant("globex", "anna")):
        assert spending.spent() == 0.0


def test_the_spending_cap_resets_daily(monkeypatch: pytest.MonkeyPatch) -> None:
    spending.spend(2.0)
    assert not spending.is_spent()
    policy.change(spend_cap_usd_per_day=2.0)
    assert spending.is_spent()
    monkeypatch.setattr(spending, "_today", lambda: "2999-01-01")
    assert not spending.is_spent()
    policy.change(spend_cap_usd_per_day=0)
    assert spending.is_spent()


def test_a_tenant_lifts_no_cap_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    policy.change(spend_cap_usd_per_day=1_000_000.0)
    spending.spend(2.0)
    assert not spending.is_spent()
    limited = get_settings().model_copy(update={"spend_cap_usd_per_day": 2.0})
    monkeypatch.setattr(spending, "get_settings", lambda: limited)
    assert spending.is_spent()

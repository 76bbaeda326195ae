"""Rate limits shared by replicas: a call at one counts at all, and for its caller only."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from settings import Settings
from tenants.access.quotas import RateLimiter
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import RateLimited

REPLICAS = 2


@pytest.fixture(params=[{"rate_limit_per_minute": 3, "rate_limit_per_day": 0}, {"rate_limit_per_day": 3}])
async def replicas(
    request: pytest.FixtureRequest, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[RateLimiter]]:
    """Two limiters, as of two processes, with one Redis and a limit of three calls a minute, or a day."""

    async def load() -> Policy:
        return Policy.model_validate({})

    monkeypatch.setattr(policy, "load", load)
    settings = Settings.model_validate({"redis_url": redis_url, **request.param})
    limiters = [RateLimiter(settings) for _ in range(REPLICAS)]
    yield limiters
    for limiter in limiters:
        await limiter.close()


@pytest.fixture
def anna() -> Tenant:
    return Tenant(f"t{uuid4().hex}", "anna")


async def test_what_one_admits_counts_for_all(replicas: list[RateLimiter], anna: Tenant) -> None:
    with acting_as(anna):
        for limiter in (replicas[0], replicas[1], replicas[0]):
            await limiter.admit()
        for limiter in replicas:
            with pytest.raises(RateLimited) as refused:
                await limiter.admit()
            assert 1 <= refused.value.retry_after <= 86_400


async def test_everybody_has_their_own(replicas: list[RateLimiter], anna: Tenant) -> None:
    for caller in (anna, Tenant(anna.tenant_id, "boris"), Tenant(f"{anna.tenant_id}-other", "anna")):
        with acting_as(caller):
            for limiter in (*replicas, replicas[0]):
                await limiter.admit()
            with pytest.raises(RateLimited):
                await replicas[0].admit()


async def test_a_call_that_the_day_refuses_does_not_use_up_the_minute(redis_url: str, anna: Tenant) -> None:
    limiter = RateLimiter(Settings.model_validate({"redis_url": redis_url}))
    assert limiter._shared is not None
    assert await limiter._shared.count(anna, 2, 1) is None
    for _ in range(3):
        assert await limiter._shared.count(anna, 2, 1) is not None
    assert await limiter._shared.count(anna, 2, 0) is None, "one of the minute's two is left"
    assert await limiter._shared.count(anna, 2, 0) is not None
    await limiter.close()

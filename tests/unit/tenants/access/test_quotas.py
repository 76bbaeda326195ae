"""Rate limits: never more calls than the limit in any minute or day, with the exact waiting time."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings import Settings
from tenants.access.quotas import RateLimiter
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import RateLimited
from tests.clocks import Clock

ANNA = Tenant("acme", "anna")


@pytest.fixture(autouse=True, scope="module")
def _no_stored_policy() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "load", _of(Policy.model_validate({})))
        yield


def _of(chosen: Policy) -> Callable[[], Awaitable[Policy]]:
    async def load() -> Policy:
        return chosen

    return load


def limiter(clock: Clock, *, minute: int = 0, day: int = 0) -> RateLimiter:
    limits = {"rate_limit_per_minute": minute, "rate_limit_per_day": day}
    return RateLimiter(Settings.model_validate(limits), clock)


async def admitted(limits: RateLimiter, caller: Tenant = ANNA) -> bool:
    try:
        with acting_as(caller):
            await limits.admit()
    except RateLimited:
        return False
    return True


@given(st.integers(1, 5), st.integers(1, 8), st.lists(st.integers(0, 90), max_size=60))
async def test_no_window_holds_more_than_its_limit(minute: int, day: int, pauses: list[int]) -> None:
    clock = Clock()
    limits = limiter(clock, minute=minute, day=day)
    passed: list[float] = []
    for pause in pauses:
        clock.now += pause
        if await admitted(limits):
            passed.append(clock.now)
    for moment in passed:
        assert sum(moment - 60 < other <= moment for other in passed) <= minute
    assert len(passed) <= day  # 60 pauses of 90 s are less than a day


@given(st.integers(1, 5), st.integers(1, 8), st.lists(st.integers(0, 30), min_size=1, max_size=60))
async def test_the_wait_is_exact(minute: int, day: int, pauses: list[int]) -> None:
    clock = Clock()
    limits = limiter(clock, minute=minute, day=day)
    for pause in pauses:
        clock.now += pause
        try:
            with acting_as(ANNA):
                await limits.admit()
        except RateLimited as refused:
            clock.now += refused.retry_after - 1
            assert not await admitted(limits)
            clock.now += 1
            assert await admitted(limits)


async def test_everybody_has_their_own() -> None:
    limits = limiter(Clock(), minute=1)
    assert await admitted(limits)
    assert not await admitted(limits)
    assert await admitted(limits, Tenant("acme", "boris"))
    assert await admitted(limits, Tenant("other", "anna"))


async def test_a_refused_call_does_not_count() -> None:
    clock = Clock()
    limits = limiter(clock, minute=1)
    assert await admitted(limits)
    for _ in range(59):
        clock.now += 1
        assert not await admitted(limits)
    clock.now += 1
    assert await admitted(limits)


async def test_zero_means_no_limit() -> None:
    limits = limiter(Clock())
    assert all([await admitted(limits) for _ in range(1_000)])


async def test_a_tenants_policy_overrides_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = limiter(Clock(), minute=1)
    chosen = Policy.model_validate({"rate_limit_per_minute": 3})
    monkeypatch.setattr(policy, "load", _of(chosen))
    assert [await admitted(limits) for _ in range(4)] == [True, True, True, False]


async def test_people_of_past_days_are_forgotten() -> None:
    clock = Clock()
    limits = limiter(clock, minute=5)
    for number in range(2_000):
        assert await admitted(limits, Tenant("acme", str(number)))
    clock.now += 86_400
    for number in range(1_100):
        assert await admitted(limits, Tenant("acme", f"new {number}"))
    assert len(limits._local._usage) <= 1_100 + 1_024


async def test_without_redis_each_process_counts_alone(nowhere: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings.model_validate({"rate_limit_per_minute": 1, "redis_url": f"redis://{nowhere}/0"})
    limits = RateLimiter(settings)
    assert [await admitted(limits) for _ in range(3)] == [True, False, False]
    assert caplog.text.count("rate limits are not shared") == 1
    await limits.close()

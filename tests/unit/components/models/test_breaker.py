"""A breaker opens after failures in a row, lets one call try after a pause, and closes when that succeeds."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.models import breaker as breakers
from components.models.breaker import Breaker, Upstream, open_now, upstream
from components.models.failures import ModelFailed
from tests.clocks import Clock

FAILURES, PAUSE = 3, 10.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(FAILURES, PAUSE, clock)


def fail(breaker: Breaker) -> None:
    with pytest.raises(ConnectionError), breaker.call():
        raise ConnectionError


def succeed(breaker: Breaker) -> None:
    with breaker.call():
        pass


def refuses(breaker: Breaker) -> bool:
    try:
        with breaker.call():
            raise ModelFailed("stopped")  # no evidence about the provider
    except ModelFailed as failure:
        return failure.outcome == "open_circuit"


def broken(breaker: Breaker) -> Breaker:
    for _ in range(FAILURES):
        fail(breaker)
    return breaker


def test_after_the_pause_one_trial_is_admitted(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    with breaker.call():
        assert refuses(breaker)
    assert not breaker.is_open
    assert not refuses(breaker)


def test_a_trial_of_a_caller_that_failed_before_costs_no_pause(breaker: Breaker, clock: Clock) -> None:
    for caller in map(str, range(FAILURES)):
        with suppress(ModelFailed), breaker.call(caller):
            raise ModelFailed("timeout")
    assert breaker.is_open
    clock.now += PAUSE
    with suppress(ModelFailed), breaker.call("0"):
        raise ModelFailed("timeout")
    assert breaker.is_open
    with breaker.call("another"):
        pass
    assert not breaker.is_open


@pytest.mark.parametrize("outcome", ["stopped", "too_dear", "busy"])
def test_an_inconclusive_trial_admits_the_next_call(breaker: Breaker, clock: Clock, outcome: str) -> None:
    broken(breaker)
    clock.now += PAUSE
    with pytest.raises(ModelFailed), breaker.call():
        raise ModelFailed(outcome)  # type: ignore[arg-type]
    assert breaker.is_open
    assert not refuses(breaker)


@pytest.mark.parametrize("fault", [RecursionError, MemoryError, KeyboardInterrupt, GeneratorExit])
def test_a_trial_is_settled_whatever_ends_it(breaker: Breaker, clock: Clock, fault: type[BaseException]) -> None:
    broken(breaker)
    clock.now += PAUSE
    with pytest.raises(fault), breaker.call():
        raise fault
    clock.now += PAUSE
    assert not refuses(breaker)


def broken_during_a_call(breaker: Breaker) -> ExitStack:
    """Admit a call before the breaker opens; it ends when the stack is closed."""
    late = ExitStack()
    late.enter_context(breaker.call())
    broken(breaker)
    return late


@pytest.mark.parametrize("fault", [ModelFailed("timeout"), ModelFailed("stopped"), None])
def test_a_late_result_does_not_end_the_trial(breaker: Breaker, clock: Clock, fault: Exception | None) -> None:
    late = broken_during_a_call(breaker)
    clock.now += PAUSE
    with breaker.call():
        with suppress(ModelFailed), late:
            if fault is not None:
                raise fault
        assert refuses(breaker)
    assert not breaker.is_open


@given(st.lists(st.sampled_from(["works", "fails", "waits"]), max_size=40))
def test_the_breaker_matches_its_model_under_any_history(events: Sequence[str]) -> None:
    clock = Clock()
    breaker = Breaker(FAILURES, PAUSE, clock)
    in_a_row, opened = 0, None
    for event in events:
        if event == "waits":
            clock.now += PAUSE / 2
            continue
        expected = opened is None or clock.now - opened >= PAUSE
        assert refuses(breaker) is not expected
        if not expected:
            continue
        if event == "works":
            succeed(breaker)
            in_a_row, opened = 0, None
        else:
            fail(breaker)
            in_a_row += 1
            opened = clock.now if in_a_row >= FAILURES else opened
        assert breaker.is_open == (opened is not None)


def test_callers_of_the_same_model_share_its_breaker_and_its_seats() -> None:
    one, two, other = (
        upstream(("test", place, "m"), failures=FAILURES, pause=PAUSE, concurrent=2)
        for place in ("here", "here", "there")
    )
    assert one is two
    assert one is not other
    assert one.seats.acquire(("", ""))
    assert two.seats.acquire(("", ""))
    assert not one.seats.acquire(("", ""))
    assert other.seats.acquire(("", ""))
    one.seats.release(("", ""))
    assert two.seats.acquire(("", ""))


def test_a_model_is_given_time_to_load_after_a_long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("components.models.breaker.monotonic", clock)
    model = Upstream(FAILURES, PAUSE, 1)
    assert model.loading_seconds(60) == 60
    clock.now += 50
    assert model.loading_seconds(60) == 10, "calls made meanwhile share the time"
    clock.now += 50
    assert model.loading_seconds(60) == 0, "a provider that hangs is given no more"
    clock.now += 301
    assert model.loading_seconds(60) == 60
    model.record_loaded()
    assert model.loading_seconds(60) == 0


def test_a_provider_counts_once_however_many_tenants_it_is_paused_for(clock: Clock) -> None:
    before = open_now()
    shared = upstream(("p", "counted", "m"), failures=FAILURES, pause=PAUSE, concurrent=1)
    shared.breaker.clock = clock
    for tenant_id in ("acme", "globex"):
        fail_for(shared, tenant_id)
    assert open_now() == before + 1
    clock.now += PAUSE
    assert open_now() == before


def test_few_breakers_of_tenants_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.models.breaker._MOST_TENANTS", 10)
    shared = Upstream(FAILURES, PAUSE, 1)
    for number in range(20):
        with shared.call(f"tenant {number}"):
            pass
    assert len(shared.of_tenants) == 10


def test_few_providers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers, "_UPSTREAMS", type(breakers._UPSTREAMS)(breakers._MOST_PROVIDERS))
    for number in range(breakers._MOST_PROVIDERS + 1):
        upstream(("tool", f"https://{number}.example"), failures=FAILURES, pause=PAUSE, concurrent=1)
    assert len(breakers._UPSTREAMS) == breakers._MOST_PROVIDERS


def fail_for(shared: Upstream, tenant_id: str) -> None:
    for _ in range(FAILURES):
        with pytest.raises(ConnectionError), shared.call(tenant_id):
            raise ConnectionError

"""A breaker opens after failures in a row, lets one call try after a pause, and closes when that succeeds."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.models.breaker import Breaker, Permit, upstream
from components.models.failures import ModelFailed

FAILURES, PAUSE = 3, 10.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(FAILURES, PAUSE, clock)


@pytest.fixture
def calls() -> Iterator[ExitStack]:
    """Calls that are under way until the test ends."""
    with ExitStack() as under_way:
        yield under_way


def fail(breaker: Breaker) -> None:
    with pytest.raises(ConnectionError), breaker.call():
        raise ConnectionError


def succeed(breaker: Breaker) -> None:
    with breaker.call():
        pass


def refuses(breaker: Breaker) -> bool:
    try:
        with breaker.call() as permit:
            permit.release_trial()
    except ModelFailed as failure:
        return failure.outcome == "open_circuit"
    return False


def broken(breaker: Breaker) -> Breaker:
    for _ in range(FAILURES):
        fail(breaker)
    return breaker


def test_only_consecutive_failures_open_the_breaker(breaker: Breaker) -> None:
    for _ in range(FAILURES - 1):
        fail(breaker)
    succeed(breaker)
    for _ in range(FAILURES - 1):
        fail(breaker)
    assert not refuses(breaker)
    fail(breaker)
    assert breaker.is_open
    assert refuses(breaker)


def test_after_the_pause_one_trial_is_admitted(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    with breaker.call():
        assert refuses(breaker)
    assert not breaker.is_open
    assert not refuses(breaker)


def test_a_failed_trial_starts_another_pause(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    fail(breaker)
    clock.now += PAUSE - 1
    assert refuses(breaker)
    clock.now += 1
    assert not refuses(breaker)


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


def admitted_before_it_broke(breaker: Breaker, calls: ExitStack) -> Permit:
    late = calls.enter_context(breaker.call())
    broken(breaker)
    return late


def test_a_late_success_does_not_close_a_breaker_on_trial(breaker: Breaker, clock: Clock, calls: ExitStack) -> None:
    late = admitted_before_it_broke(breaker, calls)
    clock.now += PAUSE
    with breaker.call() as trial:
        late.record_success()
        assert breaker.is_open
        assert refuses(breaker)
        trial.record_failure()
    assert breaker.is_open


@pytest.mark.parametrize("outcome", ["timeout", "stopped"])
def test_a_late_result_of_another_call_does_not_end_the_trial(
    breaker: Breaker, clock: Clock, calls: ExitStack, outcome: str
) -> None:
    late = admitted_before_it_broke(breaker, calls)
    clock.now += PAUSE
    with breaker.call():
        late.record(outcome)  # type: ignore[arg-type]
        assert refuses(breaker)
    assert not breaker.is_open


def test_a_trial_that_was_given_up_cannot_close_the_breaker_later(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    with breaker.call() as trial:
        trial.record_failure()
        trial.record_success()
    trial.record_success()
    assert breaker.is_open
    assert refuses(breaker)


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
    assert one.acquire(0)
    assert two.acquire(0)
    assert not one.acquire(0)
    assert other.acquire(0)
    one.release()
    assert two.acquire(0)

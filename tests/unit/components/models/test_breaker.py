"""A breaker opens after failures in a row, lets one call try after a pause, and closes when that works."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.models.breaker import Breaker, line

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


def broken(breaker: Breaker) -> Breaker:
    for _ in range(FAILURES):
        assert breaker.admit()
        breaker.failed()
    return breaker


def test_it_opens_after_failures_in_a_row_alone(breaker: Breaker) -> None:
    for _ in range(FAILURES - 1):
        breaker.failed()
    breaker.worked()
    for _ in range(FAILURES - 1):
        breaker.failed()
    assert breaker.admit()
    breaker.failed()
    assert breaker.is_open
    assert not breaker.admit()


def test_after_the_pause_one_call_tries_and_the_rest_waits(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    assert breaker.admit()
    assert not breaker.admit()
    breaker.worked()
    assert breaker.admit()
    assert not breaker.is_open


def test_a_try_that_fails_pauses_anew(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    assert breaker.admit()
    breaker.failed()
    clock.now += PAUSE - 1
    assert not breaker.admit()
    clock.now += 1
    assert breaker.admit()


def test_a_try_that_told_nothing_lets_the_next_one_try(breaker: Breaker, clock: Clock) -> None:
    broken(breaker)
    clock.now += PAUSE
    assert breaker.admit()
    breaker.unsettled()
    assert breaker.admit()


@given(st.lists(st.sampled_from(["works", "fails", "waits"]), max_size=40))
def test_whatever_happens_it_is_open_exactly_while_it_should_be(events: Sequence[str]) -> None:
    clock = Clock()
    breaker = Breaker(FAILURES, PAUSE, clock)
    in_a_row, opened = 0, None
    for event in events:
        if event == "waits":
            clock.now += PAUSE / 2
            continue
        expected = opened is None or clock.now - opened >= PAUSE
        assert breaker.admit() == expected
        if not expected:
            continue
        if event == "works":
            breaker.worked()
            in_a_row, opened = 0, None
        else:
            breaker.failed()
            in_a_row += 1
            opened = clock.now if in_a_row >= FAILURES else opened
        assert breaker.is_open == (opened is not None)


def test_who_names_the_same_model_shares_its_line_and_its_seats() -> None:
    one, two, other = (
        line(("test", place, "m"), failures=FAILURES, pause=PAUSE, concurrent=2) for place in ("here", "here", "there")
    )
    assert one is two
    assert one is not other
    assert one.take_seat(0)
    assert two.take_seat(0)
    assert not one.take_seat(0)
    assert other.take_seat(0)
    one.leave_seat()
    assert two.take_seat(0)

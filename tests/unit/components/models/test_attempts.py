"""Asking what is no chat model: in a turn's time, one declared failure, and the breaker knows."""

from collections.abc import Callable
from contextvars import ContextVar
from threading import Event
from time import monotonic

import pytest

from components.models import attempts
from components.models.attempts import attempt
from components.models.breaker import Breaker
from components.models.calls import CallOutcome, opened
from components.models.failures import ModelFailed

WHO: ContextVar[str] = ContextVar("who")


@pytest.fixture
def breaker() -> Breaker:
    return Breaker(failures=1, pause=60)


def failing() -> str:
    raise ConnectionError


def unasked() -> str:
    raise AssertionError


def outcome(breaker: Breaker, work: Callable[[], str]) -> CallOutcome:
    with pytest.raises(ModelFailed) as raised:
        attempt("it", breaker, work)
    return raised.value.outcome


def test_what_works_is_said_in_the_context_of_who_asks(breaker: Breaker) -> None:
    WHO.set("anna")
    assert attempt("it", breaker, WHO.get) == "anna"
    assert not breaker.is_open


def test_who_failed_is_left_alone(breaker: Breaker) -> None:
    assert outcome(breaker, failing) == "refused"
    assert outcome(breaker, unasked) == "open_circuit"


def test_what_takes_too_long_leaves_the_turn_time_to_do_without(
    breaker: Breaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Event()
    monkeypatch.setattr(attempts, "SHARE", 0.001)
    with opened(deadline=monotonic() + 60) as calls:
        assert outcome(breaker, lambda: str(end.wait(60))) == "timeout"
        assert calls.remaining() > 0
    end.set()
    assert breaker.is_open


def test_a_turn_without_time_asks_nobody_and_blames_nobody(breaker: Breaker) -> None:
    with opened(deadline=0):
        assert outcome(breaker, unasked) == "timeout"
    assert not breaker.is_open

"""The calls of a turn share its deadline and its cancellation across threads."""

import math
from threading import Event
from time import monotonic

from components.models.calls import Call, collect_calls, current


def call(step: str) -> Call:
    return Call(step, "ollama", "m", "p.ru@0", "fast", monotonic(), 1.0, "ok")


def test_calls_outside_a_turn_are_unbounded() -> None:
    assert current().remaining() == math.inf
    assert not current().stop.is_set()
    current().add(call("lost"))
    assert current().finished == ()


def test_a_nested_block_inherits_bounds_and_collects_its_own_calls() -> None:
    stop = Event()
    with collect_calls(monotonic() + 5, stop) as around:
        with collect_calls() as within:
            within.add(call("a"))
            assert within.stop is stop
            assert within.remaining() <= 5
            assert within.fence != around.fence
        assert (len(within.finished), len(around.finished)) == (1, 0)
        assert current() is around

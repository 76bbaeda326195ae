"""Calls of embedders, rankers and tools: bounded by the turn, one declared failure, and the breaker knows."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar
from threading import Event, Thread
from time import monotonic

import pytest

from components.models import attempts
from components.models.attempts import attempt, in_background
from components.models.breaker import Upstream
from components.models.calls import Call, CallOutcome, collect_calls, current
from components.models.failures import ModelFailed
from tenants.core.context import Tenant, acting_as

WHO: ContextVar[str] = ContextVar("who")


@pytest.fixture
def provider() -> Upstream:
    return Upstream(failures=1, pause=60, concurrent=1)


def failing() -> str:
    raise ConnectionError


def unasked() -> str:
    raise AssertionError


def out_of_time() -> str:
    raise TimeoutError


def outcome(provider: Upstream, work: Callable[[], str], seconds: float = 3_600) -> CallOutcome:
    with pytest.raises(ModelFailed) as raised:
        attempt("it", provider, work, seconds)
    return raised.value.outcome


def test_work_runs_in_the_caller_s_context(provider: Upstream) -> None:
    WHO.set("anna")
    assert attempt("it", provider, WHO.get) == "anna"
    assert not provider.breaker.is_open


def test_a_call_after_the_turn_is_late_and_blames_nobody(provider: Upstream) -> None:
    with collect_calls(deadline=0), pytest.raises(ModelFailed) as raised:
        attempt("it", provider, unasked)
    assert raised.value.is_late
    assert not provider.breaker.is_open


def test_a_failing_provider_is_skipped(provider: Upstream) -> None:
    assert outcome(provider, failing) == "refused"
    assert outcome(provider, unasked) == "open_circuit"


def test_failures_of_a_tenant_pause_a_provider_for_it_alone() -> None:
    shared = Upstream(failures=3, pause=60, concurrent=1)
    with acting_as(Tenant("globex", "")):
        assert [outcome(shared, out_of_time) for _ in range(4)] == 3 * ["timeout"] + ["open_circuit"]
    with acting_as(Tenant("acme", "")):
        assert attempt("it", shared, lambda: "vector") == "vector"


def test_a_hanging_provider_leaves_time_for_the_fallback(provider: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    end = Event()
    monkeypatch.setattr(attempts, "MAX_SHARE", 0.001)
    monkeypatch.setattr(attempts, "MIN_FAIR_SECONDS", 0.01)
    with collect_calls(deadline=monotonic() + 60) as calls:
        assert outcome(provider, lambda: str(end.wait(60))) == "timeout"
        assert calls.remaining() > 0
    end.set()
    assert provider.breaker.is_open


def test_a_provider_is_not_blamed_for_a_turn_that_was_nearly_over(provider: Upstream) -> None:
    end = Event()
    with collect_calls(deadline=monotonic() + 0.05):
        assert outcome(provider, lambda: str(end.wait(60))) == "timeout"
    assert not provider.breaker.is_open
    end.set()
    assert attempt("it", provider, lambda: "well") == "well"


def test_a_timeout_raised_by_the_provider_counts_as_its_failure(
    provider: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "MIN_FAIR_SECONDS", 3_600.0)
    with collect_calls(deadline=monotonic() + 60):
        assert outcome(provider, out_of_time) == "timeout"
    assert provider.breaker.is_open


def test_a_limit_set_for_the_call_bounds_it(provider: Upstream) -> None:
    end = Event()
    assert outcome(provider, lambda: str(end.wait(60)), seconds=0.2) == "timeout"
    end.set()
    assert provider.breaker.is_open


def test_an_abandoned_call_occupies_its_seat_until_it_ends(provider: Upstream) -> None:
    end = Event()
    provider.breaker.failures = 1_000
    assert outcome(provider, lambda: str(end.wait(60)), seconds=0.2) == "timeout"
    assert outcome(provider, unasked, seconds=0.01) == "busy"
    end.set()
    assert attempt("it", provider, lambda: "well") == "well"


def test_a_client_that_leaves_stops_waiting_for_a_seat(provider: Upstream) -> None:
    stop = Event()
    assert provider.seats.acquire(("", ""))
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(in_background, "it", provider, unasked, lambda: 60.0, stop)
        assert not wait([call], 0.1).done
        stop.set()
        with pytest.raises(ModelFailed, match="stopped"):
            call.result(20)
    provider.seats.release(("", ""))
    assert attempt("it", provider, lambda: "well") == "well"


def test_a_thread_that_cannot_start_costs_no_seat(provider: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> None:
        raise RuntimeError

    provider.breaker.failures = 1_000
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", start)
        for _ in range(2):
            with pytest.raises(RuntimeError):
                attempt("it", provider, unasked)
    assert attempt("it", provider, lambda: "well") == "well"


def test_a_turn_without_time_left_makes_no_call_and_records_no_failure(provider: Upstream) -> None:
    with collect_calls(deadline=0):
        assert outcome(provider, unasked) == "timeout"
    assert not provider.breaker.is_open


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

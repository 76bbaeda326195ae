"""A slow model is known after its first calls, gets less to read, and is given another trial when that is long ago."""

from math import inf

from components.models.pace import REPLY, Pace


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def slow(seconds: float = 65.0, clock: Clock | None = None) -> Pace:
    pace = Pace(clock or Clock())
    pace.record(1_000, REPLY, seconds)
    pace.record(1_000, REPLY, seconds)
    return pace


def test_an_unknown_pace_limits_nothing() -> None:
    assert (Pace().seconds(10_000), Pace().token_budget(0.1)) == (0.0, inf)


def test_the_call_that_loads_the_model_is_not_measured() -> None:
    pace = Pace()
    pace.record(1_000, REPLY, 60.0)
    assert (pace.seconds(1_000), pace.token_budget(1.0)) == (0.0, inf)
    pace.record(1_000, REPLY, 1.3)
    assert pace.seconds(1_000) == 1.3


def test_token_budget_and_expected_seconds_agree() -> None:
    assert slow().seconds(1_000) == 65.0
    assert slow().seconds(round(slow().token_budget(26.0))) == 26.0
    assert slow().token_budget(1.0) < 0


def test_only_the_last_calls_determine_the_pace() -> None:
    pace = slow(1.3)
    for _ in range(3):
        pace.record(1_000, REPLY, 130.0)
    assert pace.seconds(1_000) == 130.0


def test_a_timeout_shortens_prompts_without_blocking_calls() -> None:
    pace = slow(1.3)
    pace.record_timeout(1_000, 30.0)
    assert pace.seconds(1_000) == 1.3
    assert pace.token_budget(30.0) < 1_000
    pace.record(500, REPLY, 0.8)
    assert pace.token_budget(30.0) > 20_000


def test_an_old_pace_expires() -> None:
    clock = Clock()
    pace = slow(1_000.0, clock)
    pace.record_timeout(1_000, 1_000.0)
    clock.now += 301.0
    assert (pace.seconds(1_000), pace.token_budget(1.0)) == (0.0, inf)
    pace.record(1_000, REPLY, 1.3)
    assert pace.token_budget(1.0) == inf

"""The critical path of calls."""

import pytest

from evaluation.benchmarks.models import Interval, critical_path, duration


def test_of_parallel_calls_the_longer_counts() -> None:
    calls = [Interval(0, 1), Interval(1, 1.5), Interval(1.1, 2), Interval(2.1, 3)]

    assert critical_path(calls) == [calls[0], calls[2], calls[3]]
    assert duration(critical_path(calls)) == pytest.approx(2.8)

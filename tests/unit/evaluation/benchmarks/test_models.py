"""The critical path of calls."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.benchmarks.models import Interval, critical_path, duration

MOMENTS = st.floats(0, 100, allow_nan=False)
CALLS = st.lists(st.tuples(MOMENTS, st.floats(0.01, 10)).map(lambda one: Interval(one[0], one[0] + one[1])), max_size=8)


def test_of_parallel_calls_the_longer_counts() -> None:
    calls = [Interval(0, 1), Interval(1, 1.5), Interval(1.1, 2), Interval(2.1, 3)]

    assert critical_path(calls) == [calls[0], calls[2], calls[3]]
    assert duration(critical_path(calls)) == pytest.approx(2.8)


@given(CALLS)
def test_a_path_is_no_longer_than_the_time_it_spans(calls: list[Interval]) -> None:
    chain = critical_path(calls)

    assert all(one.end <= two.start for one, two in pairwise(chain))
    assert duration(chain) >= max((call.end - call.start for call in calls), default=0.0)
    assert not chain or duration(chain) <= chain[-1].end - chain[0].start + 1e-9

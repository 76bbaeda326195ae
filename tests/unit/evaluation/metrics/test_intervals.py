"""Intervals of figures."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics.intervals import Mark, many, one, percentile, ratios

marks = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=30)


def test_a_figure_is_the_ratio_of_totals() -> None:
    figures = ratios([{"a": many([1.0, 0.0, 1.0]), "b": one(True)}, {"a": many([1.0])}, {"a": many([])}])
    assert (figures["a"].value, figures["a"].n) == (0.75, 2)
    assert (figures["b"].value, figures["b"].n) == (1.0, 1)


def test_intervals_hold_their_value_and_narrow_with_cases() -> None:
    wide = ratios([{"a": one(n % 2)} for n in range(20)])["a"]
    narrow = ratios([{"a": one(n % 2)} for n in range(2_000)])["a"]
    assert wide.low < 0.5 < wide.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 5
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(2_000), rel=0.15)


def test_sentences_of_one_answer_count_as_one_case() -> None:
    apart = ratios([{"a": one(n % 2)} for n in range(100)])["a"]
    together = ratios([{"a": many([float(n % 2)] * 10)} for n in range(10)])["a"]
    assert apart.value == together.value
    assert together.high - together.low > 2 * (apart.high - apart.low)


@given(marks)
def test_a_figure_lies_within_its_interval_and_its_bounds(cases: list[Mark]) -> None:
    figures = ratios([{"a": (value * weight, weight)} for value, weight in cases])
    if any(weight for _, weight in cases):
        figure = figures["a"]
        assert 0 <= figure.low <= figure.high <= 1
        assert math.isclose(figure.value, sum(v * w for v, w in cases) / sum(w for _, w in cases), abs_tol=1e-9)
    else:
        assert figures == {}


def test_nothing_has_no_percentile() -> None:
    assert percentile([], 50) is None
    result = percentile([1.0, 2.0, 9.0], 50)
    assert result is not None
    assert result.value == 2.0

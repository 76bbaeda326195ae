import math

from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics.thresholds import area, false_answers_at, refusal_curve

scores = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_a_curve_by_hand() -> None:
    curve = refusal_curve([0.9, 0.8, 0.4], [0.5, 0.1])
    points = [(p.threshold, round(p.over_refusal, 3), p.false_answers) for p in curve]
    assert points == [
        (0.1, 0.0, 1.0),
        (0.4, 0.0, 0.5),
        (0.5, 0.333, 0.5),
        (0.8, 0.333, 0.0),
        (0.9, 0.667, 0.0),
        (math.inf, 1.0, 0.0),
    ]
    at = false_answers_at(curve, 1 / 3)
    assert at is not None
    assert (at.threshold, at.false_answers) == (0.8, 0.0)
    assert area([0.9, 0.8, 0.4], [0.5, 0.1]) == 5 / 6
    assert area([0.5], [0.5]) == 0.5


def test_no_curve_without_both_kinds_of_questions() -> None:
    assert refusal_curve([], [0.1]) == refusal_curve([0.1], []) == ()
    assert false_answers_at((), 0.1) is None


@given(scores, scores)
def test_a_point_is_what_answering_at_its_threshold_does(good: list[float], bad: list[float]) -> None:
    for point in refusal_curve(good, bad):
        assert math.isclose(point.over_refusal, sum(s < point.threshold for s in good) / len(good), abs_tol=1e-9)
        assert math.isclose(point.false_answers, sum(s >= point.threshold for s in bad) / len(bad), abs_tol=1e-9)

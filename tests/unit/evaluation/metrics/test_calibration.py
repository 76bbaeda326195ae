from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.judge.calibration import Calibration, Calibrations, Line, calibrations, log_odds
from evaluation.calibrate import LANGUAGES, LabelledTurn, fitted_lines
from evaluation.cases import Case, Record
from evaluation.metrics.calibration import cross_fitted, expected_error, logistic, logit, reliability, sigmoid, wilson
from evaluation.metrics.thresholds import advise, scores


def test_the_error_by_hand() -> None:
    predicted, truth = np.array([0.05, 0.05, 0.95, 0.95]), np.array([False, True, True, True])
    assert expected_error(predicted, truth) == pytest.approx((2 * 0.45 + 2 * 0.05) / 4)
    bins = reliability(predicted.tolist(), truth.tolist())
    assert [b.predicted for b in bins] == pytest.approx([0.05, 0.95])
    assert [(b.true, b.n) for b in bins] == [(0.5, 2), (1.0, 2)]
    assert all(b.low <= b.true <= b.high for b in bins)
    assert expected_error(np.array([1.0, 0.0]), np.array([True, False])) == 0


def test_calibrated_scores_have_no_error() -> None:
    rng = np.random.default_rng(1)
    predicted = rng.random(20_000)
    assert expected_error(predicted, rng.random(20_000) < predicted) < 0.02
    assert expected_error(predicted**3, rng.random(20_000) < predicted) > 0.1


def test_a_known_line_is_recovered() -> None:
    rng = np.random.default_rng(2)
    log = rng.normal(0, 3, size=20_000)
    labels = rng.random(20_000) < sigmoid(0.6 * log + 0.8)
    weights = logistic(log[:, None], labels)
    assert weights == pytest.approx([0.6, 0.8], abs=0.05)


def test_separable_data_have_a_finite_line() -> None:
    log = np.array([-2.0, -1.0, 1.0, 2.0])
    weights = logistic(log[:, None], log > 0)
    assert np.isfinite(weights).all()
    assert weights[0] > 0


@given(st.floats(0, 1))
def test_log_odds_are_inverted(probability: float) -> None:
    assert float(sigmoid(logit(np.array([probability])))[0]) == pytest.approx(probability, abs=1e-6)
    assert Line(1.0, 0.0).probability(log_odds(probability)) == pytest.approx(probability, abs=1e-6)


def test_no_case_is_judged_by_a_fit_that_saw_its_group() -> None:
    seen: list[int] = []

    def fit(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
        seen.append(len(features))
        assert len(features) == len(labels)
        return np.array([0.0, float(features[0, 0])])

    groups = np.array([1, 1, 2, 3])
    predicted = cross_fitted(np.array([[1.0], [1.0], [2.0], [3.0]]), np.array([True, False, True, False]), groups, fit)
    assert seen == [2, 3, 3]
    assert predicted == pytest.approx(sigmoid(np.array([2.0, 2.0, 1.0, 1.0])))


def test_an_unknown_language_uses_english_and_an_unknown_model_fails() -> None:
    english = Calibration(Line(1.0, 0.0), Line(2.0, 0.0))
    result = Calibrations({"en": english, "ru": Calibration(Line(3.0, 0.0), Line(4.0, 0.0))})
    assert result.of("de") == result.of("en") == english != result.of("ru")
    with pytest.raises(KeyError):
        calibrations("nobody")


def test_lines_are_fitted_for_every_language_with_their_residual_error() -> None:
    rng = np.random.default_rng(3)

    def turn(number: int) -> LabelledTurn:
        odds = float(rng.normal(0, 2))
        answerable = bool(rng.random() < sigmoid(np.array([odds]))[0])
        return LabelledTurn(
            number % 7, answerable, odds if number % 9 else None, 1.0 if number % 3 else None, answerable
        )

    result = fitted_lines({language: [turn(n) for n in range(200)] for language in LANGUAGES})
    for lines in result.values():
        assert lines["relevance"].error.n == 200
        assert lines["confidence"].error.n == 133
        assert set(lines["relevance"].as_json()) >= {"slope", "intercept", "n", "expected_calibration_error"}


def test_a_rerankers_log_odds_are_calibrated() -> None:
    rng = np.random.default_rng(5)

    def turn(number: int) -> LabelledTurn:
        raw_odds = float(rng.normal(0, 4))
        answerable = bool(rng.random() < sigmoid(np.array([0.5 * raw_odds - 1.0]))[0])
        return LabelledTurn(number % 7, answerable, raw_odds, 1.0, answerable)

    result = fitted_lines({language: [turn(n) for n in range(4_000)] for language in LANGUAGES})
    for lines in result.values():
        assert (lines["relevance"].line.slope, lines["relevance"].line.intercept) == pytest.approx((0.5, -1.0), abs=0.1)
        assert lines["relevance"].error.value < 0.03


def records(n: int) -> list[Record]:
    rng = np.random.default_rng(4)
    return [
        Record(
            Case(str(at), "?", answerable=at % 2 == 0),
            "x",
            score=float(rng.beta(5, 2) if at % 2 == 0 else rng.beta(2, 5)),
        )
        for at in range(n)
    ]


def test_advice_estimates_results_on_new_questions() -> None:
    graded = records(2_000)
    fresh = records(4_000)[2_000:]
    answerable, unanswerable = (np.array(column) for column in scores(fresh))
    advice = advise(graded)
    for one in advice:
        assert one.over_refusal.low <= float((answerable < one.threshold).mean()) <= one.over_refusal.high + 0.02
        assert float((unanswerable >= one.threshold).mean()) == pytest.approx(one.false_answers.value, abs=0.04)
    for strict, loose in pairwise(advice):
        assert strict.threshold <= loose.threshold
        assert strict.false_answers.value >= loose.false_answers.value


def test_too_few_questions_give_no_advice() -> None:
    assert advise(records(20)) == []


def test_a_share_of_one_has_a_wide_interval() -> None:
    low, high = wilson(1.0, 12)
    assert high == 1.0
    assert 0.7 < low < 0.8

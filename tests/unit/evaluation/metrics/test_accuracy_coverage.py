"""Rightness against the share that is claimed, and the threshold for a wished rightness."""

import pytest

from evaluation.cases import Answerable, AnswerKey, Case, LabelledPassage, Page, Record
from evaluation.metrics.accuracy_coverage import (
    GradedClaim,
    choose_threshold,
    claim_curve,
    graded_claims,
    points_at_shares,
)

TEXT = "Вернуть товар можно в течение 14 дней."


def record(confidence: float, answerable: Answerable, *, right: bool, outcome: str = "answered") -> Record:
    passages = (LabelledPassage("a", "", "", TEXT, 2), LabelledPassage("b", "", "", TEXT, 0))
    case = Case("1", "?", key=AnswerKey("howto", answerable, (), passages))
    cited = (Page("a" if right else "b", "", "", TEXT),)
    return Record(case, outcome, text=TEXT, draft=TEXT, confidence=confidence, cited=cited)


def test_a_curve_by_hand() -> None:
    curve = claim_curve(
        [
            record(0.2, "yes", right=True, outcome="low_confidence"),
            record(0.9, "yes", right=True),
            record(0.7, "no", right=True),
            # Below what was claimed, however sure.
            record(0.99, "yes", right=False, outcome="low_confidence"),
        ]
    )
    assert [point.certainty for point in curve] == [0.9, 0.7, 0.99, 0.2]
    assert [point.answer_precision for point in curve] == [1.0, 0.5, pytest.approx(1 / 3), 0.5]
    assert [point.answer_recall for point in curve] == [pytest.approx(n / 3) for n in (1, 1, 1, 2)]
    assert [point.false_answer_rate for point in curve] == [0.0, 1.0, 1.0, 1.0]
    assert [point.claimed for point in points_at_shares(curve, (0.1, 0.5, 1.0))] == [0.5, 1.0]
    assert claim_curve([Record(Case("1", "?"), "answered")]) == ()


def test_claims_are_graded_where_the_key_knows_what_they_cite() -> None:
    unknown = record(0.8, "yes", right=True)
    stranger = Record(unknown.case, "answered", cited=(Page("c", "", "", TEXT),), confidence=0.8)
    hidden = record(0.1, "yes", right=True, outcome="refused")
    assert graded_claims([unknown, stranger, hidden]) == [GradedClaim(0.8, True)]


def test_the_lowest_threshold_that_is_right_often_enough() -> None:
    graded = (
        [GradedClaim(0.3, False)] * 20
        + [GradedClaim(0.6, True)] * 15
        + [GradedClaim(0.6, False)] * 5
        + [GradedClaim(0.9, True)] * 10
    )
    result = choose_threshold(graded, 0.8)
    assert result is not None
    assert (result.threshold, result.claims) == (0.6, 30)
    assert result.right == pytest.approx(25 / 30)
    assert result.low < result.right < result.high
    assert result.expected is not None
    best = choose_threshold(graded, 0.95)
    assert best is not None
    assert best.threshold == 0.9
    assert choose_threshold(graded[:20], 0.5) is None
    assert choose_threshold(graded[-10:], 0.5) is None, "ten answers prove nothing"

"""Threshold of the relevance gate: the trade-off between wrong answers and needless refusals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.cases import Record
from evaluation.metrics.intervals import Figure, Numbers, folds, share

STOPS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
MIN_FOR_CALIBRATION = 30
"""Minimum number of questions of each kind, answerable and not, for a calibration error."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Effect of a threshold on the score: answer at or above it, refuse below."""

    threshold: float
    over_refusal: float
    false_answers: float


def refusal_curve(answerable: Sequence[float], unanswerable: Sequence[float]) -> tuple[CurvePoint, ...]:
    """Return every distinct threshold on the scores of questions with and without an answer, lowest first.

    Over-refusal never falls and false answers never rise from point to point. The last point refuses everything.
    """
    if not answerable or not unanswerable:
        return ()
    good, bad = np.sort(np.asarray(answerable)), np.sort(np.asarray(unanswerable))
    thresholds = np.append(np.unique(np.concatenate([good, bad])), np.inf)
    return tuple(
        CurvePoint(
            float(threshold),
            float(np.searchsorted(good, threshold, side="left")) / len(good),
            1 - float(np.searchsorted(bad, threshold, side="left")) / len(bad),
        )
        for threshold in thresholds
    )


def false_answers_at(curve: Sequence[CurvePoint], over_refusal: float) -> CurvePoint | None:
    """Return the strictest point that refuses at most this share of answerable questions."""
    allowed = [point for point in curve if point.over_refusal <= over_refusal + 1e-12]
    return allowed[-1] if allowed else None


def area(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """Return the chance that an answerable question scores above an unanswerable one, ties counting half (ROC AUC)."""
    good, bad = np.asarray(answerable), np.sort(np.asarray(unanswerable))
    lower = np.searchsorted(bad, good, side="left")
    upto = np.searchsorted(bad, good, side="right")
    return float((lower + upto).sum() / (2 * len(good) * len(bad)))


def scores(records: Sequence[Record]) -> tuple[list[float], list[float]]:
    """Return the relevance of questions with and without an answer in the knowledge base."""
    answerable = [record.score for record in records if record.case.answerable is True]
    return answerable, [record.score for record in records if record.case.answerable is False]


@dataclass(frozen=True, slots=True)
class Advice:
    """The lowest false-answer rate that a needless-refusal rate of at most `allowed` buys, and its threshold.

    Both rates are expected ones: measured on folds that the threshold was not chosen by.
    """

    allowed: float
    threshold: float
    over_refusal: Figure
    false_answers: Figure


def advise(records: Sequence[Record], stops: Sequence[float] = STOPS) -> list[Advice]:
    """Return advice for each allowed rate that a threshold can reach.

    Empty if too few questions are known to have an answer, or to have none.
    """
    answerable, unanswerable = (np.array(column) for column in scores(records))
    if min(len(answerable), len(unanswerable)) < MIN_FOR_CALIBRATION:
        return []
    all_advice = [_advice(answerable, unanswerable, stop) for stop in stops]
    # Questions without any passage score 0: refusing fewer would mean to answer without a passage.
    return [advice for advice in all_advice if advice.threshold > 0]


def _advice(answerable: Numbers, unanswerable: Numbers, allowed: float) -> Advice:
    refused, wrongly_answered = 0, 0
    for good, bad in zip(folds(len(answerable)), folds(len(unanswerable)), strict=True):
        threshold = _threshold(answerable[~good], unanswerable[~bad], allowed)
        refused += int((answerable[good] < threshold).sum())
        wrongly_answered += int((unanswerable[bad] >= threshold).sum())
    threshold = _threshold(answerable, unanswerable, allowed)
    return Advice(allowed, threshold, share(refused, len(answerable)), share(wrongly_answered, len(unanswerable)))


def _threshold(answerable: Numbers, unanswerable: Numbers, allowed: float) -> float:
    point = false_answers_at(refusal_curve(answerable.tolist(), unanswerable.tolist()), allowed)
    return point.threshold if point else 0.0

"""Threshold of the relevance gate: the trade-off between wrong answers and needless refusals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.cases import Record

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
    answerable = [record.score for record in records if record.case.answerable is True]
    return answerable, [record.score for record in records if record.case.answerable is False]

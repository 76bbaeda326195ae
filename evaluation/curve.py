"""The whole trade between wrong answers and needless refusals, not one point of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a threshold on the score would do: answer at or above it, refuse below."""

    threshold: float
    over_refusal: float
    false_answers: float


def refusal_curve(answerable: Sequence[float], unanswerable: Sequence[float]) -> tuple[CurvePoint, ...]:
    """Every distinct threshold on the scores of questions with and without an answer, lowest first.

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
    """The strictest point that refuses at most this share of answerable questions."""
    allowed = [point for point in curve if point.over_refusal <= over_refusal + 1e-12]
    return allowed[-1] if allowed else None


def area(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """The chance that an answerable question scores above an unanswerable one, ties counting half (ROC AUC)."""
    good, bad = np.asarray(answerable), np.sort(np.asarray(unanswerable))
    below = np.searchsorted(bad, good, side="left")
    upto = np.searchsorted(bad, good, side="right")
    return float((below + upto).sum() / (2 * len(good) * len(bad)))

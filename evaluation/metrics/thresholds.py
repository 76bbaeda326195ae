"""Scores as a basis of decisions: is a score of 0.7 right seven times in ten, and what does a threshold cost?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.cases import Record
from evaluation.metrics.intervals import Booleans, Numbers, wilson

BINS = 10
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


@dataclass(frozen=True, slots=True)
class Bin:
    """The cases whose score lies between two tenths: their mean score, the share that was right with its 95% interval
    (Wilson 1927), and how many they are."""

    predicted: float
    true: float
    low: float
    high: float
    n: int


def reliability(scores: Sequence[float], labels: Sequence[bool]) -> tuple[Bin, ...]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.bool_)
    places = _places(values)
    bins = []
    for place in np.unique(places):
        in_bin = places == place
        n, share = int(in_bin.sum()), float(truth[in_bin].mean())
        bins.append(Bin(float(values[in_bin].mean()), share, *wilson(share, n), n))
    return tuple(bins)


def expected_error(scores: Numbers, labels: Booleans) -> float:
    """Return the expected calibration error over ten equal bins (Naeini et al. 2015): 0 for perfect calibration."""
    places = _places(scores)
    counts = np.bincount(places, minlength=BINS)
    gaps = np.bincount(places, weights=scores, minlength=BINS) - np.bincount(places, weights=labels, minlength=BINS)
    return float(np.abs(gaps).sum() / counts.sum())


def _places(scores: Numbers) -> npt.NDArray[np.int64]:
    return np.minimum((scores * BINS).astype(np.int64), BINS - 1)

"""Calibration of scores: is a score of 0.7 right seven times in ten?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.cases import Record
from evaluation.metrics.intervals import Booleans, Numbers, wilson

BINS = 10
MIN_FOR_CALIBRATION = 30
"""Minimum number of questions of each kind, answerable and not, for a calibration error."""


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

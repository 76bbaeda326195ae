"""Is a score of 0.7 right seven times in ten? Reliability, its error, and the line that puts it right."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BINS = 10
_STEPS = 50
_SMALLEST = 1e-9

Numbers = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]


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
    """The bins that are not empty, lowest first."""
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.bool_)
    places = _places(values)
    bins = []
    for place in np.unique(places):
        in_bin = places == place
        n, share = int(in_bin.sum()), float(truth[in_bin].mean())
        bins.append(Bin(float(values[in_bin].mean()), share, *wilson(share, n), n))
    return tuple(bins)


def expected_error(scores: Numbers, labels: Booleans) -> float:
    """Expected calibration error over ten equal bins (Naeini et al. 2015): 0 when every score is true to its word."""
    places = _places(scores)
    counts = np.bincount(places, minlength=BINS)
    gaps = np.bincount(places, weights=scores, minlength=BINS) - np.bincount(places, weights=labels, minlength=BINS)
    return float(np.abs(gaps).sum() / counts.sum())


def _places(scores: Numbers) -> npt.NDArray[np.int64]:
    return np.minimum((scores * BINS).astype(np.int64), BINS - 1)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95% interval of a share of `n`."""
    z = 1.96
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def logistic(features: Numbers, labels: Booleans, ridge: float = 1e-6, shares: Numbers | None = None) -> Numbers:
    """Weights and, last, the bias of a logistic regression by Newton's method.

    :param features: cases by features.
    :param labels: what is to be told; smoothed a little, as Platt (1999) does, so that clean data has a finite answer.
    :param ridge: strength of the pull of the weights, not of the bias, towards 0.
    :param shares: how much each case counts; 1 when None.
    """
    counts = np.ones(len(features)) if shares is None else shares
    design = np.column_stack([features, np.ones(len(features))])
    penalty = np.diag([ridge] * features.shape[1] + [0.0])
    good = labels.sum()
    targets = np.where(labels, (good + 1) / (good + 2), 1 / (len(labels) - good + 2))
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        predicted = sigmoid(design @ weights)
        slope = design.T @ (counts * (predicted - targets)) + penalty @ weights
        curvature = (
            (design * (counts * predicted * (1 - predicted))[:, None]).T @ design
            + penalty
            + _SMALLEST * np.eye(len(weights))
        )
        step = np.linalg.solve(curvature, slope)
        weights -= step
        if np.abs(step).max() < _SMALLEST:
            break
    return weights


def sigmoid(values: Numbers) -> Numbers:
    """The logistic function, without overflow."""
    return np.exp(-np.logaddexp(0.0, -values))


def logit(probabilities: Numbers) -> Numbers:
    """Its inverse; 0 and 1 are drawn in a little, so that the result is finite."""
    inside = np.clip(probabilities, _SMALLEST, 1 - _SMALLEST)
    return np.log(inside / (1 - inside))


def cross_fitted(
    features: Numbers, labels: Booleans, groups: npt.NDArray[np.int64], fit: Callable[[Numbers, Booleans], Numbers]
) -> Numbers:
    """The probability of every case by a fit that saw no case of its group.

    :param groups: which belong together, such as the questions of one article.
    :param fit: weights and bias from features and labels.
    """
    predicted = np.zeros(len(labels))
    for group in np.unique(groups):
        held_out = groups == group
        weights = fit(features[~held_out], labels[~held_out])
        predicted[held_out] = sigmoid(features[held_out] @ weights[:-1] + weights[-1])
    return predicted

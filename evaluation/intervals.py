"""A mean is told with its uncertainty: 95% bootstrap intervals and order statistics."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2_000
SEED = 20


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number, its 95% interval (the value itself where none applies), and over how many cases."""

    value: float
    low: float
    high: float
    n: int


def mean(values: Sequence[float]) -> Figure | None:
    """The mean with a percentile bootstrap interval (Efron 1979), seeded; None of nothing."""
    if not values:
        return None
    sample = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(SEED).integers(0, len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.percentile(sample[draws].mean(axis=1), [2.5, 97.5])
    return Figure(float(sample.mean()), float(low), float(high), len(sample))


def exact(value: float, n: int) -> Figure:
    """A number that is what it is: a count, a maximum."""
    return Figure(value, value, value, n)


def percentile(values: Sequence[float], share: float) -> Figure | None:
    """The `share` (0..100) percentile, without an interval; None of nothing."""
    if not values:
        return None
    return exact(float(np.percentile(np.asarray(values, dtype=np.float64), share)), len(values))


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Figure | None:
    """The mean paired difference `ours - theirs`, with its interval."""
    return mean([a - b for a, b in zip(ours, theirs, strict=True)])

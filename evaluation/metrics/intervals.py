"""Confidence intervals of figures: a bootstrap over cases, each with its whole contribution.

A case adds a `Mark` to a figure: a sum, and a weight (number of sentences or citations, or 1 for the case itself). The
figure is the ratio of the totals. Cases are resampled as a whole, so that ten sentences of one answer do not count as
ten independent answers (a cluster bootstrap; Efron & Tibshirani 1993).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RESAMPLES = 2_000
SEED = 20
_BLOCK_CELLS = 2_000_000
_FOLDS = 10

Mark: TypeAlias = tuple[float, float]
"""Contribution of a case to a figure: a sum and its weight. Weight 0: the case does not count."""
Marks: TypeAlias = Mapping[str, Mark]
Numbers: TypeAlias = npt.NDArray[np.float64]
Booleans: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number, its 95% interval (the value itself if there is no interval), and the number of cases."""

    value: float
    low: float
    high: float
    n: int


def one(value: float | bool) -> Mark:
    return float(value), 1.0


def many(values: Sequence[float]) -> Mark:
    return float(sum(values)), float(len(values))


def ratios(marks: Sequence[Marks]) -> dict[str, Figure]:
    """Return every figure with at least one case and its percentile bootstrap interval, with a fixed seed."""
    names = list(dict.fromkeys(name for case in marks for name, (_, weight) in case.items() if weight))
    if not names:
        return {}
    sums, weights = columns(marks, names)
    drawn = np.vstack([quotients(counts @ sums, counts @ weights) for counts in draws(len(marks), RESAMPLES)])
    lows, highs = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    values = sums.sum(axis=0) / weights.sum(axis=0)
    return {
        name: Figure(float(values[at]), float(lows[at]), float(highs[at]), int((weights[:, at] > 0).sum()))
        for at, name in enumerate(names)
    }


def columns(marks: Sequence[Marks], names: Sequence[str]) -> tuple[Numbers, Numbers]:
    none = (0.0, 0.0)
    table = np.array([[case.get(name, none) for name in names] for case in marks], dtype=np.float64)
    table = table.reshape(len(marks), len(names), 2)
    return table[:, :, 0], table[:, :, 1]


def quotients(sums: Numbers, weights: Numbers) -> Numbers:
    return np.divide(sums, weights, out=np.full_like(sums, np.nan), where=weights > 0)


def draws(cases: int, resamples: int) -> Iterator[Numbers]:
    """Yield how often each case is drawn, `resamples` rows in all, in blocks that fit into memory."""
    rng = np.random.default_rng(SEED)
    block = max(1, _BLOCK_CELLS // max(1, cases))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = rng.integers(0, cases, size=(rows, cases)) + np.arange(rows)[:, None] * cases
        yield np.bincount(drawn.ravel(), minlength=rows * cases).reshape(rows, cases).astype(np.float64)


def exact(value: float, n: int) -> Figure:
    """Return a number without uncertainty, such as a count or a maximum."""
    return Figure(value, value, value, n)


def percentile(values: Sequence[float], rank: float) -> Figure | None:
    if not values:
        return None
    return exact(float(np.percentile(np.asarray(values, dtype=np.float64), rank)), len(values))


def bootstrapped(statistic: Callable[[npt.NDArray[np.int64]], float], cases: int, resamples: int = 400) -> Figure:
    """Return a statistic that is no ratio; `statistic` gets the places of the drawn cases."""
    rng = np.random.default_rng(SEED)
    drawn = [statistic(rng.integers(0, cases, size=cases)) for _ in range(resamples)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Figure(statistic(np.arange(cases)), float(low), float(high), cases)


def wilson(value: float, n: int) -> tuple[float, float]:
    """Return the 95% interval of a share of `n` (Wilson 1927)."""
    z = 1.96
    centre = (value + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (value * (1 - value) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def folds(n: int) -> list[Booleans]:
    places = np.random.default_rng(SEED).permutation(n) % _FOLDS
    return [places == fold for fold in range(_FOLDS)]

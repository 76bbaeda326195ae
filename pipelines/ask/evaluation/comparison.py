"""Two runs side by side: which questions became better or worse, and whether that is more than noise.

The same questions are asked in both runs, so each is its own control. The test is McNemar's exact test: of the
questions whose mark changed, as many should have become better as worse if the runs were alike, so the losses follow a
binomial distribution with one half. It is one-sided, because only losses are announced. Five losses without a gain are
the fewest that pass. Right replies and wrong answers are tested on their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

from pipelines.ask.evaluation.marking import RIGHT, Mark

DROP = 0.03
"""Least loss to report: three points."""
LEVEL = 0.05
"""Significance level of a loss to report, for each share."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A share that became worse: `right` or `wrong`, before and now, over the `n` questions of both runs.

    `worse` and `better` count the questions that changed. `chance` is how often noise brings as many losses.
    """

    share: str
    before: float
    now: float
    n: int
    worse: int
    better: int
    chance: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The questions of both runs by what changed, as ids, and the losses beyond noise."""

    worse: tuple[str, ...]
    better: tuple[str, ...]
    losses: tuple[Loss, ...]


def difference(before: Mapping[str, Mark], now: Mapping[str, Mark]) -> Difference:
    shared = [question_id for question_id in now if question_id in before]
    ranks = {one: (_RANKS[before[one]], _RANKS[now[one]]) for one in shared}
    of_right = _loss("right", {key: (before[key] in RIGHT, now[key] in RIGHT) for key in shared})
    of_wrong = _loss("wrong", {key: (before[key] != "wrong", now[key] != "wrong") for key in shared})
    return Difference(
        tuple(one for one, (old, new) in ranks.items() if new < old),
        tuple(one for one, (old, new) in ranks.items() if new > old),
        tuple(loss for loss in (of_right, of_wrong) if loss is not None),
    )


def chance_of(worse: int, better: int) -> float:
    """Return how often at least `worse` of the changed questions become worse by noise alone."""
    changed = worse + better
    return sum(comb(changed, losses) for losses in range(worse, changed + 1)) / float(2**changed)


_RANKS: Mapping[Mark, int] = {"answered": 3, "refused": 3, "offered": 2, "missed": 1, "wrong": 0}
"""An article instead of an answer is correct too, but less helpful."""


def _loss(share: str, good: Mapping[str, tuple[bool, bool]]) -> Loss | None:
    worse = sum(old and not new for old, new in good.values())
    better = sum(new and not old for old, new in good.values())
    if not good or (worse - better) / len(good) < DROP - 1e-9:
        return None
    chance = chance_of(worse, better)
    if chance > LEVEL:
        return None
    before, now = (sum(pair[side] for pair in good.values()) / len(good) for side in (0, 1))
    if share == "wrong":
        before, now = 1 - before, 1 - now
    return Loss(share, round(before, 4), round(now, 4), len(good), worse, better, round(chance, 6))

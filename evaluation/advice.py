"""Where to put the threshold of the relevance gate, and what each choice costs on questions it was not chosen by."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.calibration import Booleans, Numbers, wilson
from evaluation.cases import Record
from evaluation.curve import false_answers_at, refusal_curve
from evaluation.intervals import SEED
from evaluation.results import FEWEST_FOR_CALIBRATION, scores

STOPS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
_FOLDS = 10


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of `n` questions, with its 95% interval (Wilson)."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The lowest false-answer rate that a needless-refusal rate of at most `allowed` buys, and its threshold.

    Both rates are expected ones: measured on folds that the threshold was not chosen by.
    """

    allowed: float
    threshold: float
    over_refusal: Rate
    false_answers: Rate


def advise(records: Sequence[Record], stops: Sequence[float] = STOPS) -> list[Advice]:
    """Advice for each allowed rate that a threshold can reach.

    None where too few questions are known to have an answer, or to have none.
    """
    answerable, unanswerable = (np.array(column) for column in scores(records))
    if min(len(answerable), len(unanswerable)) < FEWEST_FOR_CALIBRATION:
        return []
    found = [_advice(answerable, unanswerable, stop) for stop in stops]
    # Questions that nothing was found for score 0: to refuse fewer would be to answer without a passage.
    return [one for one in found if one.threshold > 0]


def _advice(answerable: Numbers, unanswerable: Numbers, allowed: float) -> Advice:
    refused, answered = 0, 0
    for good, bad in zip(_folds(len(answerable)), _folds(len(unanswerable)), strict=True):
        threshold = _threshold(answerable[~good], unanswerable[~bad], allowed)
        refused += int((answerable[good] < threshold).sum())
        answered += int((unanswerable[bad] >= threshold).sum())
    return Advice(
        allowed,
        _threshold(answerable, unanswerable, allowed),
        _rate(refused, len(answerable)),
        _rate(answered, len(unanswerable)),
    )


def _threshold(answerable: Numbers, unanswerable: Numbers, allowed: float) -> float:
    point = false_answers_at(refusal_curve(answerable.tolist(), unanswerable.tolist()), allowed)
    return point.threshold if point else 0.0


def _folds(n: int) -> list[Booleans]:
    places = np.random.default_rng(SEED).permutation(n) % _FOLDS
    return [places == fold for fold in range(_FOLDS)]


def _rate(count: int, n: int) -> Rate:
    return Rate(count / n, *wilson(count / n, n), n)

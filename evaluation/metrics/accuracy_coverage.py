"""Accuracy against coverage: the curve of an assistant, and the threshold for a target accuracy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evaluation.cases import Answerable, AnswerKey, Record
from evaluation.metrics.answer_key import certainty, grade_turn, right_if_claimed
from evaluation.metrics.intervals import folds, wilson

MIN_CLAIMS = 20
"""Graded claims below which no threshold is worth choosing."""
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0)
_MIN_CLAIMS_ABOVE = 5


@dataclass(frozen=True, slots=True)
class GradedClaim:
    """An answer with its confidence (0..1), and whether a person or a key grades it as right."""

    confidence: float
    right: bool


@dataclass(frozen=True, slots=True)
class ClaimPoint:
    """Result of claiming only the most certain turns. `certainty` is that of the last one claimed."""

    claimed: float
    certainty: float
    answer_precision: float
    answer_recall: float
    false_answer_rate: float


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """A threshold of `confidence`, and the answers at or above it.

    `claims` is their number, `share` their share of all graded answers, `right` the share that is right, with the 95%
    interval (Wilson). `expected` is the same by cross-validation: each of ten folds is measured with a threshold chosen
    on the others; None if not measured.
    """

    threshold: float
    claims: int
    share: float
    right: float
    low: float
    high: float
    expected: float | None = None


def claim_curve(records: Sequence[Record]) -> tuple[ClaimPoint, ...]:
    """Return the curve from the most certain turn to all turns, claimed ones first. Empty if no case has a key.

    An unclaimed turn counts with its best candidate: its draft, else the passage ranked first.
    """
    keyed = [(record, key) for record in records if (key := record.case.key)]
    keyed.sort(key=lambda pair: certainty(pair[0]), reverse=True)
    answerable = [key.answerable for _, key in keyed]
    right = np.array([_would_be_right(*pair) for pair in keyed], dtype=bool)
    all_right, right_and_yes = right.cumsum(), (right & _matches(answerable, "yes")).cumsum()
    yes, no = _matches(answerable, "yes").sum(), _matches(answerable, "no")
    return tuple(
        ClaimPoint(
            claimed=at / len(keyed),
            certainty=certainty(keyed[at - 1][0])[1],
            answer_precision=float(all_right[at - 1] / at),
            answer_recall=float(right_and_yes[at - 1] / max(1, yes)),
            false_answer_rate=float(no[:at].sum() / max(1, no.sum())),
        )
        for at in range(1, len(keyed) + 1)
    )


def points_at_shares(curve: Sequence[ClaimPoint], shares: Sequence[float] = SHARES) -> Iterator[ClaimPoint]:
    for share in shares:
        place = int(share * len(curve) + 1e-9)
        if place:
            yield curve[place - 1]


def graded_claims(records: Sequence[Record]) -> list[GradedClaim]:
    """Return the claimed turns of questions with a key, except those that cite only unlabelled passages."""
    keyed = [(record, grade_turn(record, key)) for record in records if (key := record.case.key)]
    return [GradedClaim(record.confidence, turn.right) for record, turn in keyed if turn.claimed and not turn.unjudged]


def choose_threshold(graded: Sequence[GradedClaim], target: float) -> ThresholdChoice | None:
    """Return the lowest threshold with the wished accuracy, and the expected accuracy on new questions.

    None where none reaches it, or where too few answers are graded.
    """
    threshold = _lowest_threshold(graded, target) if len(graded) >= MIN_CLAIMS else None
    if threshold is None:
        return None
    held_out: list[bool] = []
    for fold in folds(len(graded)):
        known = [claim for claim, is_held_out in zip(graded, fold, strict=True) if not is_held_out]
        fitted = _lowest_threshold(known, target)
        unseen = (claim for claim, is_held_out in zip(graded, fold, strict=True) if is_held_out)
        held_out += [claim.right for claim in unseen if fitted is not None and claim.confidence >= fitted]
    return replace(threshold_choice(graded, threshold), expected=sum(held_out) / len(held_out) if held_out else None)


def threshold_choice(graded: Sequence[GradedClaim], threshold: float) -> ThresholdChoice:
    above = [claim.right for claim in graded if claim.confidence >= threshold]
    n = len(above)
    right = sum(above) / n if n else 0.0
    low, high = wilson(right, n) if n else (0.0, 1.0)
    return ThresholdChoice(threshold, n, n / max(1, len(graded)), right, low, high)


def _lowest_threshold(graded: Sequence[GradedClaim], target: float) -> float | None:
    # Rounded down, so that the answer that defines the threshold stays above it.
    for threshold in sorted({int(claim.confidence * 1_000) / 1_000 for claim in graded}):
        above = [claim.right for claim in graded if claim.confidence >= threshold]
        if len(above) >= _MIN_CLAIMS_ABOVE and sum(above) >= target * len(above) - 1e-9:
            return threshold
    return None


def _would_be_right(record: Record, key: AnswerKey) -> bool:
    turn = grade_turn(record, key)
    return turn.right if turn.claimed else right_if_claimed(record, key)


def _matches(answerable: Sequence[Answerable], value: Answerable) -> npt.NDArray[np.bool_]:
    return np.array([grade == value for grade in answerable], dtype=bool)

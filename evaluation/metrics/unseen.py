"""Cross-validation of the judge over vendors: fitted on the others, tested on each. The report shows the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from evaluation.metrics.calibration import expected_error
from evaluation.metrics.intervals import Booleans, Numbers

FILE = Path(__file__).with_name("unseen.json")
"""Written when the shipped judge is fitted."""
THRESHOLDS = (0.35, 0.4, 0.45, 0.5, 0.55)


@dataclass(frozen=True, slots=True)
class UnseenClaims:
    """Result of a threshold: the share of questions claimed, their accuracy, and the share of the unanswerable."""

    threshold: float
    claimed: float
    right: float
    of_unanswerable: float


@dataclass(frozen=True, slots=True)
class UnseenVendor:
    """A judge on the questions of a vendor that it was not fitted on; shares of 1.

    `first` and `in_three` are of the questions that a candidate answers: whether the likeliest does, or one of the
    three likeliest, as articles are offered. `calibration_error` is that of the likeliest's probability.
    """

    vendor: str
    questions: int
    first: float
    in_three: float
    calibration_error: float
    claims: tuple[UnseenClaims, ...]


_VENDORS = TypeAdapter(tuple[UnseenVendor, ...])


def unseen_vendor(
    vendor: str,
    probabilities: Sequence[Numbers],
    answers: Sequence[Booleans],
    thresholds: Sequence[float] = THRESHOLDS,
) -> UnseenVendor:
    """Measure a judge on a vendor.

    :param probabilities: by question, those of its candidates.
    :param answers: by question, whether each candidate answers it.
    """
    pairs = list(zip(probabilities, answers, strict=True))
    best = np.array([likely.max() for likely, _ in pairs])
    right = np.array([right[likely.argmax()] for likely, right in pairs], dtype=bool)
    three = np.array([right[np.argsort(-likely, kind="stable")[:3]].any() for likely, right in pairs], dtype=bool)
    can = np.array([right.any() for _, right in pairs], dtype=bool)
    return UnseenVendor(
        vendor,
        len(pairs),
        _share(right[can]),
        _share(three[can]),
        expected_error(best, right),
        tuple(
            UnseenClaims(stop, _share(best >= stop), _share(right[best >= stop]), _share(best[~can] >= stop))
            for stop in thresholds
        ),
    )


def save(vendors: Sequence[UnseenVendor], path: Path = FILE) -> None:
    """Store the table for the report."""
    path.write_bytes(_VENDORS.dump_json(tuple(vendors), indent=1) + b"\n")
    load.cache_clear()


@lru_cache(maxsize=4)
def load(path: Path = FILE) -> tuple[UnseenVendor, ...]:
    """Return the table of the shipped judge; empty if there is no file."""
    return _VENDORS.validate_json(path.read_bytes()) if path.is_file() else ()


def _share(which: Booleans) -> float:
    return float(which.mean()) if which.size else 0.0

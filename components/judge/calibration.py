"""Turns a model's score into a probability by a line over its log-odds (Platt 1999), fitted per model and language.

The lines are data, `calibration.json`, written by `python -m evaluation.calibrate` from labelled turns together with
the residual error on held-out turns.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from pathlib import Path

FILE = Path(__file__).with_name("calibration.json")
_ELSE = "en"
_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class Line:
    """Log-odds in, probability out."""

    slope: float
    intercept: float

    def probability(self, log_odds: float) -> float:
        """0..1, rising with `log_odds`."""
        return 1 / (1 + exp(-(self.slope * log_odds + self.intercept)))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The lines of one language: that the knowledge base holds the answer, and that a shown answer is right.

    `relevance` takes the judge's own log-odds, `confidence` those of the calibrated relevance.
    """

    relevance: Line
    confidence: Line


class Calibrations:
    """One engine's calibration by language; a language without a fit uses that of English."""

    def __init__(self, by_language: Mapping[str, Calibration]) -> None:
        self._by_language = dict(by_language)
        self._else = by_language[_ELSE]

    def of(self, language: str) -> Calibration:
        """The calibration of a language (ISO 639-1)."""
        return self._by_language.get(language, self._else)


@lru_cache(maxsize=8)
def calibrations(engine: str) -> Calibrations:
    """The fitted lines of an engine. Raises `KeyError`: none were fitted for it."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))["engines"][engine]
    return Calibrations(
        {
            language: Calibration(_line(lines["relevance"]), _line(lines["confidence"]))
            for language, lines in stored.items()
        }
    )


def _line(stored: Mapping[str, float]) -> Line:
    if stored["slope"] <= 0:
        raise ValueError("a calibration must not turn the order of scores round")
    return Line(stored["slope"], stored["intercept"])


def log_odds(probability: float) -> float:
    """The inverse of the logistic function, finite at 0 and 1."""
    inside = min(max(probability, _SMALLEST), 1 - _SMALLEST)
    return log(inside / (1 - inside))

"""The one model behind order, grades, gate and confidence: a logistic regression over visible evidence.

Each kind of evidence counts by itself and by its distance from the best and from the mean of the question's own
candidates, which is what holds on a help centre that the fit never saw. The weights are data, `relevance.json`, written
by `python -m evaluation.fit_judge` from graded questions of other vendors. Without cosines a second set of weights
stands in, fitted without them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from components.judge.analysis import analyse
from components.judge.calibration import Line
from components.judge.evidence import COSINE, EVIDENCE, Numbers, measure, titles
from components.judge.place import is_contrary
from components.turn import Passage, Query

FILE = Path(__file__).with_name("relevance.json")
SCORE = "relevance"
"""Among `Passage.scores`: the probability that the passage answers, beside the other candidates of the question."""

CANDIDATES = 10
"""The best and the mean are those of so many passages, best first by search, as many as the fit saw of a question."""


MIN_CANDIDATES = 8
"""As few as the fit saw of a question. Where a small knowledge base has fewer, those that are not there would have
shared no word with the question: they count as such, so that a match is not held against its being the only one."""

_BY_WORDS = [EVIDENCE.index(name) for name in ("words", "saturation")]

STRICT_CODES = 3
"""More are a pasted log, of which no document holds every one: then none of them has to stand in a passage."""

_CODE = 0.7
"""Log-odds for a passage that holds the identifier asked about. Not fitted: too few graded questions have one."""

_CONTRARY = -3.0
"""Log-odds for a section on what the question denies: 0.9 becomes 0.3, offered and not claimed. Not fitted either."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Of one set of evidence.

    `evidence` has a row for each of `EVIDENCE`: of the value, of its distance from the best, from the mean. With `bias`
    those sum up to the log-odds of one passage among others; one by itself is taken to lead by `alone` on the mean, as
    best candidates do. A line makes them a probability: `titled` where passages
    stand under titles, as in help centres, `bare` where none of them does, so that titles cannot speak for any.
    """

    evidence: Numbers
    bias: float
    alone: Numbers
    titled: Line
    bare: Line


@dataclass(frozen=True, slots=True)
class RelevanceModel:
    """Both sets of weights and those of function words, by their frequency in help centres.

    `cosines` are the least and the greatest mean of a question's candidates that the fit allows for.
    """

    meaning: Weights
    words: Weights
    function_words: Mapping[str, float]
    cosines: tuple[float, float]

    def judge(self, query: Query, passages: Sequence[Passage]) -> list["RelevanceScore"]:
        """Each passage, in their order; the best by search come first. None that lacks all of the question's codes
        answers, unless they are a pasted log's: an identifier is exact or it is another one.
        """
        if not passages:
            return []
        values = measure(query, passages, self.function_words)
        weights = self.meaning if self._knows_cosines(passages) else self.words
        line = weights.titled if any(map(titles, passages)) else weights.bare
        odds = log_odds(weights, values).tolist()
        return [
            RelevanceScore(_probability(query, passage, passage_odds, line), _shown(passage, row))
            for passage, passage_odds, row in zip(passages, odds, values.tolist(), strict=True)
        ]

    def _knows_cosines(self, passages: Sequence[Passage]) -> bool:
        """Whether all have a cosine, of the scale that was fitted: that of another encoder says something else."""
        if any(COSINE not in passage.scores for passage in passages):
            return False
        candidates = passages[:CANDIDATES]
        low, high = self.cosines
        return low <= sum(passage.scores[COSINE] for passage in candidates) / len(candidates) <= high


@dataclass(frozen=True, slots=True)
class RelevanceScore:
    """The probability that a passage answers, and the evidence for it."""

    probability: float
    evidence: Mapping[str, float]


def design(values: Numbers, alone: Numbers | float = 0.0) -> Numbers:
    """Evidence by itself, and as its distance from the best and from the mean of the candidates: three columns each.

    :param alone: the distances from the mean where there is nothing to compare with.
    """
    candidates = values[:CANDIDATES]
    means = candidates.mean(axis=0) if len(values) > 1 else values[0] - alone
    if len(candidates) < MIN_CANDIDATES:
        means[_BY_WORDS] = candidates[:, _BY_WORDS].sum(axis=0) / MIN_CANDIDATES
    lead = values - means
    return np.stack([values, values - candidates.max(axis=0), lead], axis=2).reshape(len(values), -1)


def log_odds(weights: Weights, values: Numbers) -> Numbers:
    """Of each passage among the candidates of its question."""
    return design(values, weights.alone) @ weights.evidence.ravel() + weights.bias


def _probability(query: Query, passage: Passage, odds: float, line: Line) -> float:
    beyond = _CONTRARY if is_contrary(passage, query) else 0.0
    if query.codes and analyse(passage).codes.intersection(query.codes):
        beyond += _CODE
    elif 0 < len(query.codes) <= STRICT_CODES:
        return 0.0
    return Line(line.slope, line.intercept + beyond).probability(odds)


def _shown(passage: Passage, row: Sequence[float]) -> Mapping[str, float]:
    shown_evidence = dict(zip(EVIDENCE, row, strict=True))
    if COSINE not in passage.scores:
        del shown_evidence[COSINE]
    return shown_evidence


@lru_cache(maxsize=1)
def relevance_model() -> RelevanceModel:
    """The fitted model."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return RelevanceModel(
        _weights(stored["meaning"]), _weights(stored["words"]), stored["function_words"], tuple(stored["cosines"])
    )


def _weights(stored: Mapping[str, Any]) -> Weights:
    # JSON that we wrote ourselves.
    if tuple(stored["evidence"]) != EVIDENCE:
        raise ValueError("relevance.json was fitted for other evidence: run python -m evaluation.fit_judge")
    titled, bare = (Line(**stored[name]) for name in ("titled", "bare"))
    return Weights(np.array(list(stored["evidence"].values())), stored["bias"], np.array(stored["alone"]), titled, bare)

"""How likely each candidate is to answer a query: a logistic regression over a few visible signals.

Each signal counts by itself and by its lead over the mean of the query's own candidates, which holds on help centres
that the fit never saw. The weights are data, `relevance.json`: one set with the cosines of an encoder, one by words
alone. `python -m evaluation.fit_judge` fits them on graded questions of other vendors.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from components.judge.analysis import analyse
from components.language.words import stems
from components.turn import Passage, Query

Numbers = npt.NDArray[np.float64]
Kind = Literal["vectors", "words"]

FILE = Path(__file__).with_name("relevance.json")
SCORE = "relevance"
"""Among `meta["scores"]`: the probability that the passage answers."""

COSINE = "cosine"
SIGNALS = (COSINE, "cover", "depth", "about")
"""By column: the cosine of query and passage; the share of the query's weight that the passage holds; the same by how
often (BM25, saturated); the share of title and heading that the query speaks of."""

CANDIDATES = 10
"""The leads are over the mean of so many candidates, the best by search."""
FEWEST = 8
"""The fewest that the fit saw of a query."""

STRICT_CODES = 3
"""More codes than this are a pasted log, of which no document holds every one."""

_NAMES_CODE = 2.0
"""Log-odds for a passage that names the very code: identifiers are exact, and no fit has seen enough of them."""

_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class RelevanceScore:
    """The probability that a passage answers, and the signals for it by name."""

    probability: float
    evidence: Mapping[str, float]


def judge(query: Query, passages: Sequence[Passage]) -> list[RelevanceScore]:
    """Return the probability of each passage; 0 where the query names codes and the passage holds none of them.

    :param passages: the candidates, best first by search.
    """
    if not passages:
        return []
    has_vectors = all(COSINE in passage.scores for passage in passages)
    signals = measure(query, passages)
    odds = log_odds(signals, "vectors" if has_vectors else "words")
    strict = 0 < len(query.codes) <= STRICT_CODES
    scores = []
    for passage, row, odd in zip(passages, signals.tolist(), odds.tolist(), strict=True):
        evidence = {name: value for name, value in zip(SIGNALS, row, strict=True) if name != COSINE or has_vectors}
        if not strict:
            probability = _logistic(odd)
        elif analyse(passage).codes & frozenset(query.codes):
            probability = _logistic(odd + _NAMES_CODE)
        else:
            probability = 0.0
        scores.append(RelevanceScore(probability, evidence))
    return scores


def measure(query: Query, passages: Sequence[Passage]) -> Numbers:
    """Return a row for each passage, a column for each of `SIGNALS`."""
    weights = query.weights
    rows = np.zeros((len(passages), len(SIGNALS)))
    total = sum(weights.values()) or 1.0
    read = [_read(passage.title, passage.heading, passage.text) for passage in passages]
    lengths = [sum(counts.values()) for counts, _ in read]
    mean = sum(lengths) / max(1, len(lengths)) or 1.0
    for row, passage, (counts, head), length in zip(rows, passages, read, lengths, strict=True):
        fullness = _K1 * (1 - _B + _B * length / mean)
        row[:] = (
            passage.scores.get(COSINE, 0.0),
            sum(weight * _nearest(stem, counts) for stem, weight in weights.items()) / total,
            sum(w * counts[s] / (counts[s] + fullness) for s, w in weights.items() if s in counts) / total,
            sum(_nearest(stem, weights) for stem in head) / max(1, len(head)),
        )
    return rows


def design(signals: Numbers, elsewhere: float = 0.0) -> Numbers:
    """Return each signal, then its lead over the mean of the candidates.

    Missing candidates are padded: they share no word with the query and have the cosine `elsewhere`, so that a lone
    match is not penalised.
    """
    leading = signals[:CANDIDATES]
    missing = max(0, FEWEST - len(leading))
    absent = np.zeros(signals.shape[1])
    absent[0] = elsewhere
    means = (leading.sum(axis=0) + missing * absent) / (len(leading) + missing)
    return np.hstack([signals, signals - means])


def log_odds(signals: Numbers, kind: Kind) -> Numbers:
    """Return the log-odds for each row of signals."""
    model = _models()[kind]
    odds: Numbers = design(signals, model["elsewhere"]) @ np.array(model["weights"]) + model["bias"]
    return odds


def _logistic(odds: float) -> float:
    return 1 / (1 + exp(-odds))


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Any]:
    stored: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored


@lru_cache(maxsize=3_000)
def _read(title: str, heading: str, text: str) -> tuple[Counter[str], frozenset[str]]:
    """The content stems of a passage with their counts, and those of its title and heading."""
    head = stems(f"{title}\n{heading}")
    return Counter((*head, *stems(text))), frozenset(head)


def _nearest(stem: str, others: Collection[str]) -> float:
    return 1.0 if stem in others else max((_likeness(stem, other) for other in others), default=0.0)


@lru_cache(maxsize=400_000)
def _likeness(one: str, other: str) -> float:
    """How alike two stems are by their trigrams (Dice), so that a typo or a derived word counts in part."""
    ours, theirs = _grams(one), _grams(other)
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


@lru_cache(maxsize=100_000)
def _grams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[i : i + 3] for i in range(len(padded) - 2))

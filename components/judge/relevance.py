"""Probability that a candidate answers a query: a logistic regression over a few visible signals.

Each signal counts by itself and by its lead over the mean of the query's own candidates, which holds on help centres
that the fit never saw. The weights are data, `relevance.json`: one set with the cosines of an encoder, one by words
alone. `python -m evaluation.training.fit_judge` fits them on graded questions of other vendors.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from components.judge.terms import analyse
from components.language.asking import ASKING
from components.language.captions import innermost
from components.language.marks import HEADING_LINE
from components.language.normalise import fold
from components.language.words import all_words, stems
from components.language.words import analyse as analyse_word
from components.turn import Passage, Query
from tenants.index import SPARSE

Numbers = npt.NDArray[np.float64]
Kind = Literal["vectors", "words"]

FILE = Path(__file__).with_name("relevance.json")
SCORE = "relevance"
"""Among `meta["scores"]`: the probability that the passage answers."""

COSINE = "cosine"
SIGNALS = (COSINE, "cover", "depth", "about", SPARSE)
"""By column: the cosine of query and passage; the share of the query's weight that the passage holds, function words
included; the same by how often (BM25, saturated); the share of title and innermost heading that the query names; the
score of the search by words, as a share of its best hit's. Unlike the others, it knows the rest of the index."""

CANDIDATES = 10
"""Number of best search results whose mean the leads refer to."""
PER_DOCUMENT = 3
"""Number of these from one document."""
FEWEST = 8
"""Least number of candidates per query in the training data."""

STRICT_CODES = 3
"""Number of codes above which the query is a pasted log, whose codes no document contains completely."""

_NAMES_CODE = 2.0
"""Log-odds for a passage with the exact code, set by hand: the training data has too few codes."""

_DENIED = 2.0
"""Log-odds against a passage whose heading assumes what the query denies, or denies what it asks about. Set by hand:
such questions are rare."""

_OTHER = 3.0
"""Log-odds against a passage whose heading asks something else about the subject, set by hand for the same reason."""

_HEADED = 2.0
"""Log-odds for a passage with a heading line that says just what the query asks. Set by hand: of a section that was
merged with its neighbours, the heading is one line among others."""

_FEWEST_HEADED = 2
"""Least number of content words of such a heading: a single word asks nothing."""

_QUESTIONS = ASKING | {"что"}
"""Words that open a heading in the form of a question."""

_NEGATION = re.compile(
    r"\b(?:not|never|no longer|cannot|(?:can|don|doesn|didn|won|haven|hasn|isn|wasn)['’]?t|without|не|без|нет)"
    r"(?![\w'’])",
    re.IGNORECASE,
)
_NOT = re.compile(rf"{_NEGATION.pattern}\W+([\w-]+)", re.IGNORECASE)
"""A negation with the word after it, which it denies."""
_CLAUSE = re.compile(r"\b(?:if|that|если|котор\w+)\b(.*)", re.IGNORECASE)

_K1, _B = 1.2, 0.75
_FUNCTION = 3.0
"""Weight of a function word that is missing in the training data."""


@dataclass(frozen=True, slots=True)
class RelevanceScore:
    """The probability that a passage answers, and the signals for it by name."""

    probability: float
    evidence: Mapping[str, float]


def is_fitted(space: str) -> bool:
    """Return whether the weights hold for the cosines of an encoder: those of another one lie in another range."""
    encoder: str = _models()["encoder"]
    return encoder in space


def judge(query: Query, passages: Sequence[Passage], by_meaning: bool = True) -> list[RelevanceScore]:
    """Return the probability of each passage; 0 where the query names codes and the passage holds none of them.

    :param passages: the candidates, best first by search.
    :param by_meaning: whether to go by the cosines, if there are any.
    """
    if not passages:
        return []
    has_vectors = by_meaning and all(COSINE in passage.scores for passage in passages)
    signals = measure(_weights(query), passages)
    odds = log_odds(signals, "vectors" if has_vectors else "words", _compared(passages))
    denials = _denied(query.search)
    odds -= [_DENIED * bool(denials & _assumed(innermost(passage.heading))) for passage in passages]
    odds -= [_DENIED * _denies_other(query.search, passage, passages) for passage in passages]
    odds -= [_OTHER * _asks_otherwise(query.search, passage) for passage in passages]
    odds += [_HEADED * _is_headed(query.search, passage) for passage in passages]
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


def measure(weights: Mapping[str, float], passages: Sequence[Passage]) -> Numbers:
    """Return a row for each passage, a column for each of `SIGNALS`.

    :param weights: the query's stems and function words with their rarity.
    """
    rows = np.zeros((len(passages), len(SIGNALS)))
    total = sum(weights.values()) or 1.0
    read = [_read(f"{passage.title}\n{passage.heading}", passage.text) for passage in passages]
    heads = [_head(f"{passage.title}\n{innermost(passage.heading)}") for passage in passages]
    mean = sum(counts.total() for counts in read) / max(1, len(read)) or 1.0
    for row, passage, counts, head in zip(rows, passages, read, heads, strict=True):
        fullness = _K1 * (1 - _B + _B * counts.total() / mean)
        occurring = [(weight, counts[stem]) for stem, weight in weights.items() if stem in counts]
        row[:] = (
            passage.scores.get(COSINE, 0.0),
            sum(weight for weight, _ in occurring) / total,
            sum(weight * count / (count + fullness) for weight, count in occurring) / total,
            len(head & weights.keys()) / max(1, len(head)),
            passage.scores.get(SPARSE, 0.0),
        )
    return rows


def _compared(passages: Sequence[Passage]) -> list[int]:
    """Return the rows of the candidates that a lead is measured against: the best ones, a few of each document.

    Sections of one article are alike. More of them would raise the mean, and each would lead by less.
    """
    rows: list[int] = []
    per_document: Counter[str] = Counter()
    for row, passage in enumerate(passages):
        per_document[passage.doc_id] += 1
        if per_document[passage.doc_id] <= PER_DOCUMENT:
            rows.append(row)
    return rows[:CANDIDATES]


def design(signals: Numbers, elsewhere: float = 0.0, compared: Sequence[int] | None = None) -> Numbers:
    """Return each signal, then its lead over the mean of the candidates.

    Missing candidates are padded: they share no word with the query and have the cosine `elsewhere`, so that a lone
    match is not penalised.

    :param compared: rows of the candidates; None: the first `CANDIDATES`.
    """
    leading = signals[:CANDIDATES] if compared is None else signals[compared]
    missing = max(0, FEWEST - len(leading))
    absent = np.zeros(signals.shape[1])
    absent[0] = elsewhere
    means = (leading.sum(axis=0) + missing * absent) / (len(leading) + missing)
    return np.hstack([signals, signals - means])


def log_odds(signals: Numbers, kind: Kind, compared: Sequence[int] | None = None) -> Numbers:
    """Return the log-odds for each row of signals; `compared` are the candidates that leads refer to."""
    model = _models()[kind]
    odds: Numbers = design(signals, model["elsewhere"], compared) @ np.array(model["weights"]) + model["bias"]
    return odds


def _logistic(odds: float) -> float:
    return 1 / (1 + exp(-odds))


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Any]:
    stored: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored


def _weights(query: Query) -> dict[str, float]:
    """Return the query's words with their rarity: content stems in the tenant's index, function words as in the fit.

    Function words count because "как" and "можно" in a heading tell a guide from a definition.
    """
    common: Mapping[str, float] = _models()["function_words"]
    words = (analyse_word(word) for word in all_words(query.search))
    return {stem: common.get(stem, _FUNCTION) if stop else query.weights.get(stem, 0.0) for stem, stop in words}


@lru_cache(maxsize=3_000)
def _read(above: str, text: str) -> Counter[str]:
    """Count the stems of a passage, its title and headings included."""
    return Counter(analyse_word(word)[0] for word in all_words(f"{above}\n{text}"))


@lru_cache(maxsize=3_000)
def _head(above: str) -> frozenset[str]:
    """Return the content stems of a title and the innermost heading."""
    return frozenset(stems(above))


@lru_cache(maxsize=3_000)
def _denied(text: str) -> frozenset[str]:
    """Return the stems that a text denies: "remember" of "I can't remember it"."""
    return frozenset(stem for match in _NOT.finditer(text) for stem in stems(match[1]))


def _denies_other(query: str, passage: Passage, passages: Sequence[Passage]) -> bool:
    """Return whether a heading denies what the query asks about, and another one affirms it in the same words.

    "What does the extended warranty cover?" is not answered under "What the extended warranty does not cover".
    """
    heading = innermost(passage.heading)
    if not _denied(heading).intersection(stems(query)) - _denied(query):
        return False
    affirmed = _affirmed(heading)
    others = (innermost(other.heading) for other in passages)
    return any(_affirmed(other) == affirmed and not _denied(other) for other in others)


@lru_cache(maxsize=3_000)
def _affirmed(heading: str) -> frozenset[str]:
    """Return the stems of a heading without its negations."""
    return frozenset(stems(_NEGATION.sub(" ", heading)))


def _asks_otherwise(query: str, passage: Passage) -> bool:
    """Return whether the query names only the subject of the document, while the heading asks something else about it.

    "What is the warranty?" is not answered under "What the warranty does not cover", nor "Where is the service centre?"
    in its article under "Where to buy spare parts".
    """
    heading = innermost(passage.heading)
    asked = frozenset(stems(query))
    headed = frozenset(stems(heading))
    if not asked or not headed or not asked.issubset(stems(passage.title)):
        return False
    is_question = fold(all_words(heading)[0]) in _QUESTIONS
    denies = bool(_denied(heading)) and not _NOT.search(query)
    return is_question and (denies or asked.isdisjoint(headed))


def _is_headed(query: str, passage: Passage) -> bool:
    """Return whether a heading within the passage has the words of the query, and no others, and asks nothing else.

    "Is there a warranty on the repair?" is answered under "Warranty on repairs", not under "Warranty repair times". The
    heading above a passage is a signal already (`about`).
    """
    asked = frozenset(stems(query))
    asking = _asking(query)
    for match in HEADING_LINE.finditer(passage.text):
        heading = match[1]
        headed = frozenset(stems(heading))
        if len(headed) >= _FEWEST_HEADED and headed == asked:
            is_same = not asking or not _asking(heading) or bool(asking & _asking(heading))
            if is_same and _denied(query) == _denied(heading):
                return True
    return False


@lru_cache(maxsize=3_000)
def _asking(text: str) -> frozenset[str]:
    return ASKING.intersection(map(fold, all_words(text)))


@lru_cache(maxsize=3_000)
def _assumed(heading: str) -> frozenset[str]:
    """Return the stems of a heading's condition, if it has one: "remember" of "a password that you remember"."""
    clause = _CLAUSE.search(heading)
    return frozenset(stems(clause[1])) - _denied(heading) if clause else frozenset()

"""How much of a question a passage covers.

Coverage is the share of the question's inverse-document-frequency weight whose stems are present (the idea of
query-term coverage in Metzler & Croft 2005, on sentences). Every feature lies in 0..1.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import pairwise

from components.judge.analysis import Analysis, Sentence
from components.language.relatives import families, relatives
from components.language.words import words
from components.turn import Query

_DERIVED_CREDIT = 0.6
_DOUBT_CREDIT = 0.8
_NEAR_WORDS = 4
_CODES_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Question:
    """A question prepared for many passages: weights by stem (sum 1), neighbouring pairs of content words."""

    weights: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]
    codes: frozenset[str]


def prepare(query: Query) -> Question:
    """The question's side of every comparison, computed once a pass."""
    query_words = words(query.search)
    content = [word for word in query_words if not word.stop]
    heavy = with_raised_codes(query)
    total = sum(heavy.values()) or 1.0
    weights = {
        stem: weight / total * (_DOUBT_CREDIT if stem in query.doubtful else 1.0) for stem, weight in heavy.items()
    }
    pairs = tuple((first.stem, second.stem) for first, second in pairwise(content))
    return Question(weights, pairs, frozenset(query.codes))


def with_raised_codes(query: Query) -> Mapping[str, float]:
    """The question's weights with 60% of the sum or more on its codes: "E20" matters more than "on the display"."""
    named = {code.lower() for code in query.codes} & query.weights.keys()
    other_weight = sum(weight for stem, weight in query.weights.items() if stem not in named)
    share = sum(query.weights[stem] for stem in named)
    if not share or share >= _CODES_SHARE * (share + other_weight):
        return query.weights
    factor = other_weight * _CODES_SHARE / (1 - _CODES_SHARE) / share
    return {stem: weight * factor if stem in named else weight for stem, weight in query.weights.items()}


def sentence_coverage(
    question: Question, passage: Analysis, sentence: Sentence, kin: Mapping[str, frozenset[str]]
) -> tuple[float, float]:
    """The exact and the merely derived coverage of one sentence, its heading counted as its context."""
    exact = derived = 0.0
    for stem, weight in question.weights.items():
        if stem in sentence.places or stem in passage.head:
            exact += weight
        elif (related := kin.get(stem)) and any(other in sentence.places or other in passage.head for other in related):
            derived += weight
    return exact, derived


def share_said(weights: Mapping[str, float], said: Set[str]) -> float:
    """The share of the weight on stems that occur in `said`, directly or as a related word; 0 where nothing weighs."""
    kin = families(said)
    total = sum(weights.values())
    return sum(w for stem, w in weights.items() if stem in said or relatives(stem, kin)) / total if total else 0.0


def word_order(question: Question, sentence: Sentence) -> float:
    """The share of the question's neighbouring word pairs that stay near each other in the sentence, 0..1."""
    if not question.pairs:
        return 0.0
    near_pairs = 0
    for left, right in question.pairs:
        left_place, right_place = sentence.places.get(left), sentence.places.get(right)
        near_pairs += (
            left_place is not None and right_place is not None and abs(left_place - right_place) <= _NEAR_WORDS
        )
    return near_pairs / len(question.pairs)

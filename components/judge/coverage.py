"""How much of a question a passage covers: the features that the local judge weighs.

Coverage is the share of the question's inverse-document-frequency weight whose stems are present (the idea of
query-term coverage in Metzler & Croft 2005, on sentences). Every feature lies in 0..1.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import pairwise

from components.judge.analysis import Analysis, Sentence
from components.language.relatives import relatives
from components.language.vocabulary import Vocabulary
from components.language.words import Word, words
from components.turn import Query

_DERIVED_CREDIT = 0.6
_DOUBT_CREDIT = 0.8
_NEAR_WORDS = 4
_CODES_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Question:
    """A question prepared for many passages: weights by stem (sum 1), neighbouring pairs, weights of names."""

    weights: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]
    names: Mapping[str, float]
    codes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The features of one passage for one question.

    `sentence` and `sentence_soft` are the best sentence's exact and derivation-tolerant coverage, read under its
    heading; `passage_soft` is the whole chunk's, tolerant; `order` the share of neighbouring word pairs that stay
    near each other in one sentence; `names_missing` the weight share of names (capitalised words) that are absent.
    """

    sentence: float
    sentence_soft: float
    passage_soft: float
    order: float
    names_missing: float


def prepare(query: Query) -> Question:
    """The question's side of every comparison, computed once a pass."""
    found = words(query.search)
    content = [word for word in found if not word.stop]
    raised = _raised(query)
    total = sum(raised.values()) or 1.0
    weights = {
        stem: weight / total * (_DOUBT_CREDIT if stem in query.doubtful else 1.0) for stem, weight in raised.items()
    }
    names = {word.stem: weights[word.stem] for word in content if _is_name(word) and word.stem in weights}
    pairs = tuple((one.stem, two.stem) for one, two in pairwise(content))
    return Question(weights, pairs, names, frozenset(query.codes))


def _raised(query: Query) -> Mapping[str, float]:
    """The question's weights with 60% of the sum or more on its codes: "E20" matters more than "on the display"."""
    named = {code.lower() for code in query.codes} & query.weights.keys()
    others = sum(weight for stem, weight in query.weights.items() if stem not in named)
    share = sum(query.weights[stem] for stem in named)
    if not share or share >= _CODES_SHARE * (share + others):
        return query.weights
    factor = others * _CODES_SHARE / (1 - _CODES_SHARE) / share
    return {stem: weight * factor if stem in named else weight for stem, weight in query.weights.items()}


def _is_name(word: Word) -> bool:
    # The first word of a sentence is capitalised whatever it is.
    return word.start > 0 and word.text[0].isupper()


def cover(question: Question, passage: Analysis) -> Coverage:
    """Measure one passage. Cost: some 20 microseconds a sentence."""
    kin = {stem: relatives(stem, passage.families) for stem in question.weights if stem not in passage.stems}
    exact = sum(weight for stem, weight in question.weights.items() if stem in passage.stems)
    soft = exact + _DERIVED_CREDIT * sum(question.weights[stem] for stem, others in kin.items() if others)
    best = best_soft = order = 0.0
    for sentence in passage.sentences:
        covered, derived = sentence_coverage(question, passage, sentence, kin)
        best = max(best, covered)
        best_soft = max(best_soft, covered + _DERIVED_CREDIT * derived)
        order = max(order, word_order(question, sentence))
    absent = {stem for stem, others in kin.items() if not others}
    return Coverage(best, best_soft, soft, order, _share_of_names(question, absent))


def most(question: Question, vocabulary: Vocabulary) -> Coverage:
    """The best that any passage made of these words can reach in each feature; the least of `names_missing`."""
    unknown = {stem for stem in question.weights if stem not in vocabulary.stems}
    strange = {stem for stem in unknown if not relatives(stem, vocabulary.families)}
    exact = sum(weight for stem, weight in question.weights.items() if stem not in unknown)
    soft = exact + _DERIVED_CREDIT * sum(question.weights[stem] for stem in unknown - strange)
    near = sum(one not in unknown and two not in unknown for one, two in question.pairs)
    order = near / len(question.pairs) if question.pairs else 0.0
    return Coverage(exact, soft, soft, order, _share_of_names(question, strange))


def _share_of_names(question: Question, absent: Set[str]) -> float:
    """The share of the weight of the question's names that lies on `absent` stems."""
    named = sum(question.names.values())
    return sum(weight for stem, weight in question.names.items() if stem in absent) / named if named else 0.0


def sentence_coverage(
    question: Question, passage: Analysis, sentence: Sentence, kin: Mapping[str, frozenset[str]]
) -> tuple[float, float]:
    """The exact and the merely derived coverage of one sentence, its heading counted as its context."""
    exact = derived = 0.0
    for stem, weight in question.weights.items():
        if stem in sentence.places or stem in passage.head:
            exact += weight
        elif (others := kin.get(stem)) and any(other in sentence.places or other in passage.head for other in others):
            derived += weight
    return exact, derived


def word_order(question: Question, sentence: Sentence) -> float:
    """The share of the question's neighbouring word pairs that stay near each other in the sentence, 0..1."""
    if not question.pairs:
        return 0.0
    near = 0
    for one, two in question.pairs:
        first, second = sentence.places.get(one), sentence.places.get(two)
        near += first is not None and second is not None and abs(first - second) <= _NEAR_WORDS
    return near / len(question.pairs)

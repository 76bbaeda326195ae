"""Rejected approaches: does a question ask about one, does a sentence propose one?"""

from functools import lru_cache

from components.judge.claims import negated
from components.judge.coverage import Question
from components.language.relatives import Families, families, relatives
from components.language.words import stems
from components.turn import RejectedApproach

_DERIVED_CREDIT = 0.6
_PROPOSED = 0.75


def coverage(question: Question, text: str) -> float:
    """The share of the question's weight that an approach covers, 0..1; a derived word counts for 60%."""
    text_stems, kin = _read(text)
    exact = derived = 0.0
    for stem, weight in question.weights.items():
        if stem in text_stems:
            exact += weight
        elif relatives(stem, kin):
            derived += weight
    return exact + _DERIVED_CREDIT * derived


def proposed(sentence: str, approach: RejectedApproach) -> bool:
    """Whether a sentence tells people to do what was rejected: it holds three quarters of the approach's words.

    A sentence that is negated where the approach is not advises against it.
    """
    approach_stems, _ = _read(approach.text)
    if not approach_stems or (negated(sentence) and not negated(approach.text)):
        return False
    sentence_stems, kin = _read(sentence)
    matched = sum(1 for stem in approach_stems if stem in sentence_stems or relatives(stem, kin))
    return matched >= _PROPOSED * len(approach_stems)


@lru_cache(maxsize=2_000)
def _read(text: str) -> tuple[frozenset[str], Families]:
    text_stems = frozenset(stems(text))
    return text_stems, families(text_stems)

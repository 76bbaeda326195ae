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
    known, kin = _read(text)
    exact = derived = 0.0
    for stem, weight in question.weights.items():
        if stem in known:
            exact += weight
        elif relatives(stem, kin):
            derived += weight
    return exact + _DERIVED_CREDIT * derived


def proposed(sentence: str, approach: RejectedApproach) -> bool:
    """Whether a sentence tells people to do what was rejected: it holds three quarters of the approach's words.

    A sentence that is negated where the approach is not advises against it.
    """
    wanted, _ = _read(approach.text)
    if not wanted or (negated(sentence) and not negated(approach.text)):
        return False
    said, kin = _read(sentence)
    held = sum(1 for stem in wanted if stem in said or relatives(stem, kin))
    return held >= _PROPOSED * len(wanted)


@lru_cache(maxsize=2_000)
def _read(text: str) -> tuple[frozenset[str], Families]:
    found = frozenset(stems(text))
    return found, families(found)

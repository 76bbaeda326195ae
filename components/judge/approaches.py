"""Rejected approaches: does a question ask about one, does a sentence propose one?"""

import re
from collections.abc import Mapping
from functools import lru_cache

from components.language.normalise import fold
from components.language.words import Families, families, relatives, stems
from components.turn import RejectedApproach

NEGATIONS = frozenset("не нет ни без нельзя невозможно никогда никто ничего not no never none without cannot".split())
_WORD = re.compile(r"[\w']+")
_DERIVED_CREDIT = 0.6
PROPOSED = 0.75
"""Share of an approach's words from which a sentence proposes it in its own words."""


def coverage(weights: Mapping[str, float], text: str) -> float:
    """Return the share (0..1) of the weight of a question's stems that a text covers; a derived word counts for 60%."""
    text_stems, kin = _read(text)
    exact = derived = 0.0
    for stem, weight in weights.items():
        if stem in text_stems:
            exact += weight
        elif relatives(stem, kin):
            derived += weight
    total = sum(weights.values())
    return (exact + _DERIVED_CREDIT * derived) / total if total else 0.0


def negated(text: str) -> bool:
    """Return whether the text contains a negation."""
    text_words = _WORD.findall(fold(text).replace("’", "'"))
    return any(word in NEGATIONS or word.endswith("n't") for word in text_words)


def proposed(sentence: str, approach: RejectedApproach) -> bool:
    """Return whether a sentence tells people to do what was rejected: it holds three quarters of the approach's words.

    A sentence that is negated and an approach that is not: the sentence advises against it.
    """
    if shared(sentence, approach.text) < PROPOSED:
        return False
    return negated(approach.text) or not negated(sentence)


def shared(text: str, approach: str) -> float:
    """Return the share (0..1) of an approach's stems that a text holds, derived words included."""
    approach_stems, _ = _read(approach)
    text_stems, kin = _read(text)
    matched = sum(1 for stem in approach_stems if stem in text_stems or relatives(stem, kin))
    return matched / len(approach_stems) if approach_stems else 0.0


@lru_cache(maxsize=2_000)
def _read(text: str) -> tuple[frozenset[str], Families]:
    text_stems = frozenset(stems(text))
    return text_stems, families(text_stems)

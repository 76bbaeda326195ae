"""Premises: the conditions that a heading assumes, and the ones that a question denies."""

import re
from functools import lru_cache

from components.language.words import stems

_NOT = re.compile(
    r"\b(?:not|never|no longer|cannot|(?:can|don|doesn|didn|won|haven|hasn|isn|wasn)['’]?t|without|не|без|нет)"
    r"(?![\w'’])\W+((?:[\w-]+\W+)?[\w-]+)",
    re.IGNORECASE,
)
"""A negation with the two words after it, which it denies."""
_CLAUSE = re.compile(r"\b(?:if|that|если|котор\w+)\b(.*)", re.IGNORECASE)


@lru_cache(maxsize=3_000)
def denied(text: str) -> frozenset[str]:
    """Return the stems that a text denies: "remember" of "I can't remember it"."""
    return frozenset(stem for match in _NOT.finditer(text) for stem in stems(match[1]))


@lru_cache(maxsize=3_000)
def assumed(heading: str) -> frozenset[str]:
    """Return the stems of a heading's condition, if it has one: "remember" of "a password that you remember"."""
    clause = _CLAUSE.search(heading)
    return frozenset(stems(clause[1])) - denied(heading) if clause else frozenset()

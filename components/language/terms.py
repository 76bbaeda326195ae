"""The terms of a passage: its content stems, and its content words folded."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from components.language.encoder_settings import PassageField
from components.language.normalise import fold
from components.language.words import analyse


def content_terms(words: Mapping[PassageField, Sequence[str]]) -> tuple[frozenset[str], frozenset[str]]:
    """The distinct content stems, and the distinct content words folded.

    :param words: as written, by the field that they stand in.
    """
    distinct = {word for field_words in words.values() for word in field_words}
    terms = {terms for terms in map(_terms, distinct) if terms is not None}
    return frozenset(stem for stem, _ in terms), frozenset(word for _, word in terms)


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, str] | None:
    """The stem of a content word, and the word folded; None for a function word."""
    stem, stop = analyse(word)
    return None if stop else (stem, fold(word))

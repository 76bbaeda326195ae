"""Synonyms: what customers call a thing, and what the articles of a tenant call it."""

from collections.abc import Container, Sequence
from functools import lru_cache
from pathlib import Path

from components.language.normalise import fold
from components.language.words import Word, stems, words
from components.language.yaml_files import read_yaml

_FILE = Path(__file__).with_name("synonyms.yaml")


@lru_cache(maxsize=1)
def common_synonyms() -> tuple[tuple[str, ...], ...]:
    """Return the groups that hold for any tenant, of all languages."""
    return tuple(tuple(group) for groups in read_yaml(_FILE).values() for group in groups)


def with_known_synonyms(question: str, groups: Sequence[Sequence[str]], known_stems: Container[str]) -> str:
    """Return the question with words that the knowledge base lacks replaced by synonyms that it has.

    "Стиралка не сливает" becomes "стиральная машина не сливает" where the articles know only the latter. A word that
    they know stays: they may mean something by it.

    :param groups: words or phrases that mean the same, each known by its stems.
    :param known: stems of the knowledge base.
    """
    for group in groups:
        synonym = next(
            (term for term in group if (term_stems := stems(term)) and all(stem in known_stems for stem in term_stems)),
            None,
        )
        if synonym is None:
            continue
        for term in group:
            if term != synonym and any(stem not in known_stems for stem in stems(term)):
                question = _replaced(question, term, synonym)
    return question


def _replaced(question: str, term: str, synonym: str) -> str:
    """Return the question with each run of words that are the term's, inflected or not, replaced."""
    sought = [_key(word) for word in words(term)]
    # Skip other stop words in between: "take it back".
    asked = [word for word in words(question) if not word.stop or _key(word) in sought]
    for start in range(len(asked) - len(sought), -1, -1):
        run = asked[start : start + len(sought)]
        if [_key(word) for word in run] == sought:
            question = question[: run[0].start] + synonym + question[run[-1].end :]
    return question


def _key(word: Word) -> str:
    """Return what two forms of a word share. Stop words of a phrase count too: "how much" is not "too much"."""
    return fold(word.text) if word.stop else word.stem

"""The analysis of a passage, computed once and used by every judgement."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from components.language.identifiers import codes
from components.language.relatives import Families, families
from components.language.words import words
from components.turn import Passage


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: its offsets, its content stems with the place of their first occurrence, its length, its codes.

    Thousands of these are cached, so it holds no words.
    """

    start: int
    end: int
    places: Mapping[str, int]
    length: int
    codes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Analysis:
    """Features of a passage that judges use.

    `head` are the stems of title and heading, `stems` those of body and head together, `families` the same by their
    first five letters, `codes` the identifiers it is about: those in body and heading, and the title's only one. A
    title that lists several codes belongs to a page about all of them.
    """

    sentences: tuple[Sentence, ...]
    head: frozenset[str]
    stems: frozenset[str]
    families: Families
    codes: frozenset[str]


def analyse(passage: Passage) -> Analysis:
    """Return the analysis of a passage, cached by its text."""
    return _analyse(passage.title, passage.heading, passage.text, passage.sentences)


@lru_cache(maxsize=3_000)
def _analyse(title: str, heading: str, text: str, spans: tuple[tuple[int, int], ...]) -> Analysis:
    sentences = tuple(_sentence(text, start, end) for start, end in spans)
    head = frozenset(word.stem for word in words(f"{title}\n{heading}") if not word.stop)
    stems = head.union(*(sentence.places for sentence in sentences))
    titled = codes(title)
    named_codes = frozenset(codes(f"{heading}\n{text}")).union(titled if len(titled) == 1 else ())
    return Analysis(sentences, head, stems, families(stems), named_codes)


def _sentence(text: str, start: int, end: int) -> Sentence:
    sentence_words = words(text[start:end])
    places: dict[str, int] = {}
    for place, word in enumerate(sentence_words):
        if not word.stop:
            places.setdefault(word.stem, place)
    return Sentence(start, end, places, len(sentence_words), frozenset(codes(text[start:end])))

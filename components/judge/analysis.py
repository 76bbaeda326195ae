"""The analysis of a passage, computed once and used by every judgement."""

from dataclasses import dataclass
from functools import lru_cache

from components.language.identifiers import codes
from components.language.words import stems
from components.turn import Passage


@dataclass(frozen=True, slots=True)
class Analysis:
    """Features of a passage that judges use.

    `stems` are those of title, heading and the sentences that may be quoted, `codes` the identifiers it is about: those
    in body and heading, and the title's only one. A title that lists several codes belongs to a page about all of them.
    """

    stems: frozenset[str]
    codes: frozenset[str]


def analyse(passage: Passage) -> Analysis:
    """Return the analysis of a passage, cached by its text."""
    return _analyse(passage.title, passage.heading, passage.text, passage.sentences)


@lru_cache(maxsize=3_000)
def _analyse(title: str, heading: str, text: str, spans: tuple[tuple[int, int], ...]) -> Analysis:
    said = "\n".join((title, heading, *(text[start:end] for start, end in spans)))
    titled = codes(title)
    named_codes = frozenset(codes(f"{heading}\n{text}")).union(titled if len(titled) == 1 else ())
    return Analysis(frozenset(stems(said)), named_codes)

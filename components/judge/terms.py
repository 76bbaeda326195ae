"""Stems, with their rarity in the knowledge base, and codes: how judges read a query and a passage."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from components.language.identifiers import codes, codes_asked
from components.language.words import stems
from components.turn import Passage, Query
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon

_CODES_SHARE = 0.6
_MAX_STEMS = 15

_FEWEST_CHUNKS = 1_000
"""Minimum size assumed for a knowledge base: with three articles, their own topic would look common."""


def read_query(text: str) -> Query:
    """Return the query with the weights of its stems, for the tenant in context."""
    terms = lexicon.current()
    weights = {stem: rarity(terms, stem) for stem in stems(text)}
    codes = strict_codes(text)
    return Query(text, weights=_with_raised_codes(weights, codes), codes=codes)


def known_share(text: str) -> float:
    """Return the share of a text's content words, by rarity, that the tenant's knowledge base has; 0 without any."""
    terms = lexicon.current()
    weights = {stem: rarity(terms, stem) for stem in stems(text)}
    known = sum(weight for stem, weight in weights.items() if stem in terms.stems)
    return known / sum(weights.values()) if weights else 0.0


def strict_codes(text: str) -> tuple[str, ...]:
    """Return the codes that an answer must be about; none for a long text, where a code is one detail of many."""
    return codes_asked(text, lexicon.current().codes) if len(set(stems(text))) <= _MAX_STEMS else ()


def _with_raised_codes(weights: dict[str, float], codes: Sequence[str]) -> dict[str, float]:
    """Raise codes to at least `_CODES_SHARE` of all weight: "E20" matters more than "on the display"."""
    named = {code.lower() for code in codes} & weights.keys()
    share = sum(weights[stem] for stem in named)
    rest = sum(weights.values()) - share
    if not share or share >= _CODES_SHARE * (share + rest):
        return weights
    factor = rest * _CODES_SHARE / (1 - _CODES_SHARE) / share
    return {stem: weight * factor if stem in named else weight for stem, weight in weights.items()}


def rarity(terms: Lexicon, stem: str) -> float:
    """Inverse document frequency of a stem over the tenant's chunks, the BM25 form, above 0."""
    containing = terms.stems.get(stem, 0)
    chunks = max(terms.chunks, _FEWEST_CHUNKS)
    return log(1 + (chunks - containing + 0.5) / (containing + 0.5))


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

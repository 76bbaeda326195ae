"""What a chunk adds to the tenant's lexicon."""

from collections.abc import Mapping
from functools import lru_cache

from components.language.normalise import fold
from components.language.words import all_words, analyse
from tenants.index.protocol import Hit, Json
from tenants.lexicon import ChunkTerms


def chunk_terms(title: str, heading: str, text: str) -> ChunkTerms:
    """The distinct content stems and folded content words of a chunk as it is indexed."""
    words = set(all_words(f"{title}\n{heading}\n{text}"))
    found = {terms for terms in map(_terms, words) if terms is not None}
    return ChunkTerms(frozenset(stem for stem, _ in found), frozenset(word for _, word in found))


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, str] | None:
    """The stem of a content word, and the word folded; None for a function word."""
    stem, stop = analyse(word)
    return None if stop else (stem, fold(word))


def stored_terms(hit: Hit) -> ChunkTerms:
    """The same of a stored chunk."""
    meta = stored_meta(hit)
    return chunk_terms(str(meta["title"]), str(meta["heading"]), str(hit.payload["content"]))


def stored_meta(hit: Hit) -> Mapping[str, Json]:
    """The metadata of a stored chunk."""
    meta = hit.payload["meta"]
    if not isinstance(meta, Mapping):
        raise TypeError(hit.id)
    return meta

"""What a chunk adds to the tenant's lexicon."""

from components.language.normalise import fold
from components.language.words import analyse, content_words
from tenants.index.protocol import Hit
from tenants.lexicon import ChunkTerms


def chunk_terms(title: str, heading: str, text: str) -> ChunkTerms:
    """The distinct content stems and folded content words of a chunk as it is indexed."""
    found = set(content_words(f"{title}\n{heading}\n{text}"))
    return ChunkTerms(frozenset(analyse(word)[0] for word in found), frozenset(fold(word) for word in found))


def stored_terms(hit: Hit) -> ChunkTerms:
    """The same of a stored chunk."""
    meta = hit.payload["meta"]
    if not isinstance(meta, dict):
        raise TypeError(hit.id)
    return chunk_terms(str(meta["title"]), str(meta["heading"]), str(hit.payload["content"]))

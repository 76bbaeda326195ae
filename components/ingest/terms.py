"""Terms that a chunk adds to the tenant's lexicon."""

from collections.abc import Mapping

from components.language.captions import HEADING_SEPARATOR
from components.language.encoder import passage_words
from components.language.identifiers import shapes
from components.language.words import content_terms
from tenants.core.json import Json
from tenants.core.points import Hit
from tenants.knowledge.lexicon import ChunkTerms


def chunk_terms(title: str, heading: str, text: str) -> ChunkTerms:
    """Return the distinct content stems and folded content words of a chunk, and the codes that it explains."""
    return ChunkTerms(
        *content_terms(passage_words(title, heading, text).values()), explained_codes(title, heading, text)
    )


def explained_codes(title: str, heading: str, text: str) -> frozenset[str]:
    """Return the shapes of the codes that a chunk explains: after a keyword or at the start of a line or heading."""
    return shapes("\n".join((title, *heading.split(HEADING_SEPARATOR), text)))


def stored_terms(hit: Hit) -> ChunkTerms:
    """Return the same of a stored chunk."""
    meta = stored_meta(hit)
    return chunk_terms(str(meta["title"]), str(meta["heading"]), str(hit.payload["content"]))


def stored_meta(hit: Hit) -> Mapping[str, Json]:
    """Return the metadata of a stored chunk."""
    meta = hit.payload["meta"]
    if not isinstance(meta, Mapping):
        raise TypeError(hit.id)
    return meta

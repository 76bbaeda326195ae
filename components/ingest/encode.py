"""Chunks with all their vectors, as an index stores them, and the terms that they add to the tenant's lexicon."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from components.embed.dense import embed_passages, passage_text
from components.ingest.document import Chunk
from components.language.captions import HEADING_SEPARATOR
from components.language.encoder import encode_words, passage_words
from components.language.encoder_settings import EncoderSettings
from components.language.identifiers import shapes
from components.language.words import content_terms
from components.turn import Frozen
from tenants.core import fairness
from tenants.core.json import Json
from tenants.core.points import Dense, Hit, Point, Sparse, Vector
from tenants.index import DENSE, SPARSE
from tenants.knowledge.lexicon import ChunkTerms


@dataclass(frozen=True, slots=True)
class Text(Frozen):
    """Text to encode for a chunk. `heading` is the path below the title."""

    chunk_id: str
    title: str
    heading: str
    text: str


def text_of(chunk: Chunk) -> Text:
    """Return the text to encode for a chunk."""
    return Text(chunk.chunk_id, str(chunk.meta["title"]), chunk.heading, chunk.text)


def stored_text(hit: Hit) -> Text:
    """Return the same of a stored chunk."""
    meta = stored_meta(hit)
    return Text(hit.id, str(meta["title"]), str(meta["heading"]), str(hit.payload["content"]))


def stored_meta(hit: Hit) -> Mapping[str, Json]:
    """Return the metadata of a stored chunk."""
    meta = hit.payload["meta"]
    if not isinstance(meta, Mapping):
        raise TypeError(hit.id)
    return meta


def embedded(
    texts: Iterable[Text], settings: EncoderSettings, known: Mapping[Text, Dense] = MappingProxyType({})
) -> Mapping[Text, Dense]:
    """Return the dense vectors of chunks; none where the settings have none. Raises `EmbeddingFailed`.

    :param known: vectors that need not be computed again.
    """
    if settings.dense is None:
        return {}
    missing = [text for text in texts if text not in known]
    vectors = embed_passages([passage_text(text.title, text.heading, text.text) for text in missing], settings.dense)
    return {**known, **dict(zip(missing, vectors, strict=True))}


def encoded(text: Text, payload: Mapping[str, Json], settings: EncoderSettings, dense: Mapping[Text, Dense]) -> Point:
    """Return a chunk ready to be stored.

    :param dense: the result of `embedded`, which includes this chunk.
    """
    fairness.yield_to_questions()
    words = passage_words(text.title, text.heading, text.text)
    vectors: dict[str, Vector | Sparse] = {SPARSE: Sparse(*encode_words(words, settings))}
    if text in dense:
        vectors[DENSE] = dense[text]
    return Point(text.chunk_id, vectors, payload)


def terms_of(text: Text) -> ChunkTerms:
    """Return the distinct content stems and folded content words of a chunk, and the shapes of the codes it explains.

    A code is explained after a keyword or at the start of a line or heading.
    """
    words = passage_words(text.title, text.heading, text.text).values()
    codes = shapes("\n".join((text.title, *text.heading.split(HEADING_SEPARATOR), text.text)))
    return ChunkTerms(*content_terms(words), codes)


def stored_terms(hit: Hit) -> ChunkTerms:
    """Return the same of a stored chunk."""
    return terms_of(stored_text(hit))

"""Chunks with all their vectors, as an index stores them, and the terms that they add to the tenant's lexicon."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

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
from tenants.core.points import Dense, Point, Sparse, Vector
from tenants.index import DENSE, SPARSE
from tenants.knowledge.lexicon import ChunkTerms

Payload: TypeAlias = Mapping[str, Json]
"""The stored form of a chunk, beside its vectors: `id`, `content` and `meta`."""
_SEARCHED = "search_words"
"""Key of the keywords that are part of a chunk's vectors and terms."""


@dataclass(frozen=True, slots=True)
class Text(Frozen):
    """Text to encode for a chunk. `title` comes with the keywords of the document, `heading` is the path below it."""

    chunk_id: str
    title: str
    heading: str
    text: str


def payload_of(chunk: Chunk) -> dict[str, Json]:
    """Return the payload to store with the vectors of a chunk."""
    keywords = chunk.meta.get("keywords")
    # Chunks that were stored before keywords were searched have none under this key.
    searched = {_SEARCHED: keywords} if isinstance(keywords, list) and keywords else {}
    return {"id": chunk.chunk_id, "content": chunk.text, "meta": {**chunk.meta, **searched}}


def meta_of(payload: Payload) -> Mapping[str, Json]:
    """Return the metadata of a chunk."""
    meta = payload["meta"]
    if not isinstance(meta, Mapping):
        raise TypeError("meta")
    return meta


def text_of(payload: Payload) -> Text:
    """Return the text to encode for a chunk."""
    meta = meta_of(payload)
    keywords = meta.get(_SEARCHED)
    title = ", ".join([str(meta["title"]), *map(str, keywords if isinstance(keywords, list) else ())])
    return Text(str(meta["chunk_id"]), title, str(meta["heading"]), str(payload["content"]))


def embedded(
    payloads: Iterable[Payload], settings: EncoderSettings, known: Mapping[Text, Dense] = MappingProxyType({})
) -> Mapping[Text, Dense]:
    """Return the dense vectors of chunks; none where the settings have none. Raises `EmbeddingFailed`.

    :param known: vectors that need not be computed again.
    """
    if settings.dense is None:
        return {}
    missing = [text for text in map(text_of, payloads) if text not in known]
    vectors = embed_passages([passage_text(text.title, text.heading, text.text) for text in missing], settings.dense)
    return {**known, **dict(zip(missing, vectors, strict=True))}


def encoded(payload: Payload, settings: EncoderSettings, dense: Mapping[Text, Dense]) -> Point:
    """Return a chunk ready to be stored.

    :param dense: the result of `embedded`, which includes this chunk.
    """
    fairness.yield_to_questions()
    text = text_of(payload)
    words = passage_words(text.title, text.heading, text.text)
    vectors: dict[str, Vector | Sparse] = {SPARSE: Sparse(*encode_words(words, settings))}
    if text in dense:
        vectors[DENSE] = dense[text]
    return Point(text.chunk_id, vectors, payload)


def terms_of(payload: Payload) -> ChunkTerms:
    """Return the distinct content stems and folded content words of a chunk, and the shapes of the codes it explains.

    A code is explained after a keyword or at the start of a line or heading.
    """
    text = text_of(payload)
    words = passage_words(text.title, text.heading, text.text).values()
    codes = shapes("\n".join((text.title, *text.heading.split(HEADING_SEPARATOR), text.text)))
    return ChunkTerms(*content_terms(words), codes)

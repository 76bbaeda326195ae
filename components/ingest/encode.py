"""Chunks with all their vectors, as an index stores them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from components.embed.dense import embed_passages, passage_text
from components.language.encoder import encode_passage
from components.language.encoder_settings import EncoderSettings
from tenants import fairness
from tenants.index import DENSE
from tenants.index.protocol import Dense, Json, Point, Vector


@dataclass(frozen=True, slots=True)
class Text:
    """What a chunk is encoded from. `heading` is the path below the title."""

    chunk_id: str
    title: str
    heading: str
    text: str


def embedded(texts: Iterable[Text], settings: EncoderSettings) -> Mapping[str, Dense]:
    """The dense vectors by chunk; none where the settings have none. Raises `EmbeddingFailed`."""
    if settings.dense is None:
        return {}
    chosen = list(texts)
    vectors = embed_passages([passage_text(one.title, one.heading, one.text) for one in chosen], settings.dense)
    return {one.chunk_id: vector for one, vector in zip(chosen, vectors, strict=True)}


def encoded(text: Text, payload: Mapping[str, Json], settings: EncoderSettings, dense: Mapping[str, Dense]) -> Point:
    """A chunk ready to be stored.

    :param dense: what `embedded` gave, for this chunk among others.
    """
    fairness.give_way()
    vectors: dict[str, Vector] = dict(encode_passage(text.title, text.heading, text.text, settings))
    if text.chunk_id in dense:
        vectors[DENSE] = dense[text.chunk_id]
    return Point(text.chunk_id, vectors, payload)

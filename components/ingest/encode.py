"""Chunks with all their vectors, as an index stores them."""

from collections.abc import Iterable, Mapping

from components.embed.dense import embed_passages, passage_text
from components.ingest.analysis import Analysed, Text
from components.language.encoder_settings import EncoderSettings
from tenants import fairness
from tenants.index import DENSE
from tenants.index.protocol import Dense, Json, Point, Vector


def embedded(texts: Iterable[Text], settings: EncoderSettings) -> Mapping[str, Dense]:
    """The dense vectors by chunk; none where the settings have none. Raises `EmbeddingFailed`."""
    if settings.dense is None:
        return {}
    chosen = list(texts)
    vectors = embed_passages([passage_text(one.title, one.heading, one.text) for one in chosen], settings.dense)
    return {one.chunk_id: vector for one, vector in zip(chosen, vectors, strict=True)}


def encoded(text: Text, payload: Mapping[str, Json], found: Analysed, dense: Mapping[str, Dense]) -> Point:
    """A chunk ready to be stored.

    :param found: what it is found by.
    :param dense: what `embedded` gave, for this chunk among others.
    """
    fairness.give_way()
    vectors: dict[str, Vector] = dict(found.vectors)
    if text.chunk_id in dense:
        vectors[DENSE] = dense[text.chunk_id]
    return Point(text.chunk_id, vectors, payload)

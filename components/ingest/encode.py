"""Chunks with all their vectors, as an index stores them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from components.embed.dense import embed_passages, passage_text
from components.ingest.analysis import Analysed, Text
from components.language.encoder_settings import EncoderSettings
from tenants.core import fairness
from tenants.core.json import Json
from tenants.core.points import Dense, Point, Sparse, Vector
from tenants.index import DENSE, SPARSE


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


def encoded(text: Text, payload: Mapping[str, Json], analysis: Analysed, dense: Mapping[Text, Dense]) -> Point:
    """Return a chunk ready to be stored.

    :param analysis: its search features.
    :param dense: the result of `embedded`, which includes this chunk.
    """
    fairness.yield_to_questions()
    dimensions, weights = analysis.packed
    vectors: dict[str, Vector | Sparse] = {
        SPARSE: Sparse(np.frombuffer(dimensions, np.uint32), np.frombuffer(weights, np.float64))
    }
    if text in dense:
        vectors[DENSE] = dense[text]
    return Point(text.chunk_id, vectors, payload)

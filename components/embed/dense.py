"""Dense vectors for an index, computed by the embedder in its settings and checked; failures are one declared error."""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite

import numpy as np

from components.embed.protocol import Embedder
from components.language.encoder_settings import DenseSettings
from components.models.attempts import attempt
from components.models.breaker import upstream
from components.models.failures import ModelFailed
from components.retrieve.cache import TenantLruCache
from components.serialisation import from_description
from settings import get_settings
from tenants.core import fairness
from tenants.core.errors import TryAgain
from tenants.core.points import Dense

log = logging.getLogger("opora.embed")

FAILURES = 3
PAUSE_SECONDS = 30.0
"""Pause for an embedder after `FAILURES` failures in a row; meanwhile questions are searched by keywords only."""

LOCAL_OLLAMA = "http://127.0.0.1:11434"
"""Address of Ollama in profiles, unless `OPORA_OLLAMA_URL` is set."""

CONCURRENT = 32
"""Questions embedded at once by one embedder; abandoned calls count until they end."""

LOADING_SECONDS = 120.0
"""Time in which a server may load its model: questions do not wait for it, and timeouts are no failures."""

_AT_ONCE = 512
_QUESTIONS: TenantLruCache[Dense] = TenantLruCache(4_500)
"""Vectors of questions, and of the texts that each of them is compared with, such as rejected approaches."""


class EmbeddingFailed(TryAgain):
    """No vectors available: the server is unreachable or model files are missing. Nothing was stored.

    Code `embedding_differs`: the vectors have another length than the settings say.
    """

    code = "embedding_unavailable"


def settings_of(embedder: Embedder) -> DenseSettings:
    """Return the vector space of an embedder, stored with what it encodes.

    This holds the path of its class, by which `_embedder` restores it: an embedder that moves loses its indexes.
    """
    # By way of JSON, so that these are equal to settings that were stored.
    stored = json.loads(portable(json.dumps(embedder.to_dict())))
    return DenseSettings(space=embedder.space, dimensions=embedder.dimensions, embedder=stored)


def passage_text(title: str, heading: str, text: str) -> str:
    """Return the text to embed for a passage: title, heading path (below the title) and body."""
    above = ". ".join(part for part in (title, heading) if part)
    return "\n".join(part for part in (above, text) if part)


def embed_passages(texts: Sequence[str], settings: DenseSettings) -> list[Dense]:
    """Return the vectors of passages, in their order. Raises `EmbeddingFailed`."""
    vectors: list[Dense] = []
    try:
        embedder = _embedder(located(settings.json_form))
        for start in range(0, len(texts), _AT_ONCE):
            fairness.yield_to_questions()
            batch = texts[start : start + _AT_ONCE]
            vectors.extend(_checked(embedder.passages(batch), len(batch), settings))
    except EmbeddingFailed as unfit:
        log.error("passages cannot be embedded by %s: %s", settings.space, unfit.params)
        raise
    except Exception as fault:
        log.error("passages cannot be embedded by %s: %s", settings.space, type(fault).__name__)
        raise EmbeddingFailed from fault
    return vectors


def embed_question(
    text: str, settings: DenseSettings, *, failures: int = FAILURES, pause: float = PAUSE_SECONDS
) -> Dense:
    """Return the vector of a question, cached for the next pass. Raises `EmbeddingFailed`.

    :param failures: consecutive failures after which the embedder is skipped for `pause` seconds.
    """
    key = _QUESTIONS.key(text, settings.json_form)
    cached = _QUESTIONS.get(key)
    if cached is not None:
        return cached
    vector = _embedded(text, settings, failures, pause)
    _QUESTIONS.put(key, vector)
    return vector


def cosine(vector: Dense, other: Dense) -> float:
    """Return the cosine of two vectors; 0 if one of them is 0."""
    one, two = np.asarray(vector, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return float(one @ two / max(float(np.linalg.norm(one) * np.linalg.norm(two)), 1e-12))


def load(settings: DenseSettings) -> None:
    """Load the model before the first question needs it. A failure is reported at the first question.

    A server that needs longer than its `patience` loads its model in the background.
    """
    try:
        _embedded("?", settings)
    except Exception as fault:
        cause = fault.__cause__
        level = logging.INFO if isinstance(cause, ModelFailed) and cause.is_late else logging.WARNING
        log.log(level, "search uses words only until %s answers; `opora doctor` checks it", settings.space)


def _embedded(text: str, settings: DenseSettings, failures: int = FAILURES, pause: float = PAUSE_SECONDS) -> Dense:
    """Return the vector of a question, within the embedder's patience. Raises `EmbeddingFailed`."""

    def embedded() -> Dense:
        (vector,) = _checked([_embedder(located(settings.json_form)).question(text)], 1, settings)
        return vector

    shared = upstream(("embedder", settings.space), failures=failures, pause=pause, concurrent=CONCURRENT)
    name = f"embedder {settings.space.partition(' ')[0]}"
    with EmbeddingFailed().instead_of(ModelFailed):
        return attempt(name, shared, embedded, _patience(settings), loading=LOADING_SECONDS)


def _checked(vectors: Sequence[Dense], count: int, settings: DenseSettings) -> Sequence[Dense]:
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} vectors for {count} texts")
    for vector in vectors:
        if len(vector) != settings.dimensions:
            lengths = {"dimensions": len(vector), "declared": settings.dimensions}
            raise EmbeddingFailed("embedding_differs", model=settings.space, **lengths)
        if not isfinite(sum(vector)):
            raise ValueError("a vector that is not finite")
    return vectors


def _patience(settings: DenseSettings) -> float:
    """Return the seconds that a question waits; no limit for a model in this process."""
    parameters = settings.embedder.get("init_parameters")
    patience = parameters.get("patience") if isinstance(parameters, Mapping) else None
    return float(patience) if isinstance(patience, int | float) else inf


@lru_cache(maxsize=16)
def _embedder(json_form: str) -> Embedder:
    settings = json.loads(json_form)
    embedder: Embedder = from_description(settings["embedder"], "embedder")
    if embedder.space != settings["space"]:
        log.error("an index was embedded by %s, and here is %s: rebuild it", settings["space"], embedder.space)
        raise ValueError("another space")
    return embedder


def portable(json_form: str) -> str:
    """Return settings without the address in `OPORA_OLLAMA_URL`, so that an index does not depend on it."""
    url = get_settings().ollama_url
    return json_form.replace(f'"{url}"', f'"{LOCAL_OLLAMA}"') if url else json_form


def located(json_form: str) -> str:
    """Return settings with the address in `OPORA_OLLAMA_URL`, to be used here."""
    url = get_settings().ollama_url
    return json_form.replace(f'"{LOCAL_OLLAMA}"', f'"{url}"') if url else json_form

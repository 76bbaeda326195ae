"""The protocol of components that compute dense vectors."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenants.core.json import Json
from tenants.core.points import Dense

_DIMENSIONS: Mapping[str, int] = {
    "all-minilm": 384,
    "bge-m3": 1024,
    "mxbai-embed-large": 1024,
    "nomic-embed-text": 768,
}
"""Lengths of the vectors of embedding models in Ollama's library, from their model cards."""


def known_dimensions(model: str) -> int:
    """Return the length of the vectors of a model, named with or without a tag; 0 for an unknown model."""
    return _DIMENSIONS.get(model.partition(":")[0], 0)


class Embedder(Protocol):
    """A model that reads passages and questions into one space. Thread-safe. Named in YAML as a nested component.

    `dimensions` is how many numbers each vector has. Any exception is a failure to embed. An embedder of a server may
    have `patience`, the seconds that a question waits for its vector.
    """

    dimensions: int

    @property
    def space(self) -> str:
        """Return the name of the vector space: embedders with the same name give the same vectors for a text."""

    @property
    def available(self) -> bool:
        """Return whether vectors will be available. If not, the index has none, and search uses words only."""

    def to_dict(self) -> Mapping[str, Json]:
        """Serialise to `{type, init_parameters}` without secrets, for Haystack and to store with the index."""

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """Return the vectors of passages, in their order."""

    def question(self, text: str) -> Dense:
        """Return the vector of a question."""

"""The protocol of components that compute dense vectors."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenants.core.json import Json
from tenants.index import Dense


class Embedder(Protocol):
    """A model that reads passages and questions into one space. Thread-safe. Named in YAML as a nested component.

    `dimensions` is how many numbers each vector has. Any exception is a failure to embed.
    """

    dimensions: int

    @property
    def space(self) -> str:
        """The name of the vector space: embedders with the same space give the same vectors for the same texts."""

    @property
    def available(self) -> bool:
        """Whether vectors will be available. False: the index is built without them, and search uses words only."""

    def to_dict(self) -> Mapping[str, Json]:
        """For Haystack, and stored with the index: `{type, init_parameters}` without secrets."""

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """The vectors of passages, in their order."""

    def question(self, text: str) -> Dense:
        """The vector of a question."""

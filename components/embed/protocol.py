"""What makes dense vectors, whatever model does it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenants.index import Dense, Json


class Embedder(Protocol):
    """A model that reads passages and questions into one space. Thread-safe. Named in YAML as a nested component.

    `dimensions` is how many numbers each vector has. Any exception is a failure to embed.
    """

    dimensions: int

    @property
    def space(self) -> str:
        """Names what it computes: embedders that name the same space give the same vectors for the same texts."""

    @property
    def available(self) -> bool:
        """Whether there will be vectors. False: an index is made without, and passages are found by words alone."""

    def to_dict(self) -> Mapping[str, Json]:
        """For Haystack, and for the index, which keeps it: `{type, init_parameters}`, no secret among them."""

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """The vectors of passages, in their order."""

    def question(self, text: str) -> Dense:
        """The vector of a question."""

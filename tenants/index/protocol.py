"""What an index backend must do. One `Collection` is one tenant's searchable chunks, whatever engine holds them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tenants.accounts.registry import Placement
from tenants.core.json import Json
from tenants.core.points import Conditions, Hit, Point, Vector


class Collection(Protocol):
    """One tenant's chunks. Thread-safe. Writes are durable when the call returns."""

    @property
    def encoder(self) -> str:
        """How its vectors were made, as `components.language.encoder_settings` writes it; opaque here."""

    @property
    def version(self) -> str | None:
        """Another one after every write, and in every other collection: under the same version a search finds the same.
        None when somebody else may write to it unseen."""

    @property
    def broken(self) -> bool:
        """Whether the engine has failed on what is stored, so that it has to be opened anew."""

    @property
    def dimensions(self) -> int:
        """How many numbers a dense vector has here; 0 for a collection without them."""

    def upsert(self, points: Sequence[Point]) -> None:
        """Store points, replacing those with the same id. Raises `InternalFault` on NaN, a malformed id, or a dense
        vector of another size."""

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        """Replace the payloads of points by id and leave their vectors alone; unknown ids are ignored."""

    def delete(self, ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,
        conditions: Conditions | None = None,
        payloads: bool = True,
    ) -> Mapping[str, list[Hit]]:
        """The best `limit` hits for each named vector, best first: by inner product with stored IDF where it is sparse,
        by cosine where it is dense.

        :param payloads: False leaves payloads empty, for a caller that merges the rankings and then fetches the best.
        """

    def inverse_frequencies(self, dimensions: Sequence[int]) -> Mapping[int, float]:
        """Return the inverse document frequency of each of these sparse dimensions that a point has."""

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        """The stored points among `ids`, in their order.

        :param dense: bring their dense vectors too.
        """

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        """Every stored point, in no particular order.

        :param dense: bring their dense vectors too.
        """

    def count(self) -> int:
        """How many points are stored."""

    def close(self) -> None:
        """Flush and release the collection."""


class Engine(Protocol):
    """What holds collections, generation by generation. A `Placement` names one generation."""

    def exists(self, placement: "Placement") -> bool:
        """Whether the generation was made, whole, and not removed."""

    def create(self, placement: "Placement", tenant_id: str, dimensions: int = 0) -> None:
        """Make an empty generation; losing a race against another process that makes the same one is fine.

        :param dimensions: of its dense vectors; 0 for none.
        """

    def open(self, placement: "Placement", tenant_id: str, encoder: str, dimensions: int = 0) -> Collection:
        """A generation that exists. Raises `InternalFault` with the code `collection_foreign` when it is not the
        tenant's, `IndexDamaged` when it cannot be read."""

    def set_aside(self, placement: "Placement") -> None:
        """Make room for a new generation in the place of one that cannot be read."""

    def activate(self, placement: "Placement") -> None:
        """Let the collection's lasting name stand for this generation, where the engine knows such names."""

    def remove(self, placement: "Placement") -> None:
        """Delete a generation if it is there."""

    def close(self) -> None:
        """Disconnect."""

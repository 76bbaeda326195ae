"""Interface of index backends. One `Collection` is one tenant's searchable chunks, whatever the engine."""
# ruff: noqa: ARG002 - a collection without points ignores what it is asked for

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tenants.accounts.registry import Placement
from tenants.core.errors import InternalFault
from tenants.core.json import Json
from tenants.core.points import Conditions, Hit, Point, Vector
from tenants.index.layout import check_queries


class Collection(Protocol):
    """A tenant's chunks. Thread-safe. Writes are durable when the call returns.

    The methods here are those of a collection without points, which nothing can be written to.

    :cvar encoder: the encoder settings of its vectors, from `components.language.encoder_settings`; opaque here.
    :cvar version: changes with every write and differs between collections; equal versions give equal search results.
        None if other processes may write to the collection.
    :cvar dimensions: the size of the dense vectors; 0 for a collection without them.
    """

    encoder: str = ""
    version: str | None = None
    dimensions: int = 0

    @property
    def broken(self) -> bool:
        """Whether the engine has failed on the stored data, so that the collection must be opened anew."""
        return False

    def upsert(self, points: Sequence[Point]) -> None:
        """Store points, replacing those with the same id. Raises `InternalFault` on NaN, a malformed id, or a dense
        vector of another size."""
        raise InternalFault("collection_missing")

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        """Replace the payloads of points by id and leave their vectors alone; unknown ids are ignored."""
        return

    def delete(self, ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        return

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,
        conditions: Conditions | None = None,
        payloads: bool = True,
    ) -> Mapping[str, list[Hit]]:
        """Return the best `limit` hits for each named vector, best first: sparse vectors by inner product with stored
        IDF, dense vectors by cosine.

        :param payloads: False leaves payloads empty, for a caller that merges the rankings and then fetches the best.
        """
        check_queries(queries, self.dimensions)
        return {name: [] for name in queries}

    def inverse_frequencies(self, dimensions: Sequence[int]) -> Mapping[int, float]:
        """Return the inverse document frequency of each of these sparse dimensions that a point has."""
        return {}

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        """Return the stored points among `ids`, in their order.

        :param dense: bring their dense vectors too.
        """
        return []

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        """Yield every stored point, in no particular order.

        :param dense: return dense vectors too.
        """
        return iter(())

    def count(self) -> int:
        """Return the number of stored points."""
        return 0

    def close(self) -> None:
        """Flush and release the collection."""
        return


class EmptyCollection(Collection):
    """The collection of a tenant without an index. Reading never creates anything."""


class Engine(Protocol):
    """Stores collections, generation by generation. A `Placement` names one generation.

    What an engine has no use for does nothing.
    """

    def exists(self, placement: Placement) -> bool:
        """Whether the generation was created completely and not removed."""

    def create(self, placement: Placement, tenant_id: str, dimensions: int = 0) -> None:
        """Create an empty generation; losing a race against another process that creates the same one is fine.

        :param dimensions: of its dense vectors; 0 for none.
        """

    def open(self, placement: Placement, tenant_id: str, encoder: str, dimensions: int = 0) -> Collection:
        """Open an existing generation. Raises `InternalFault` with the code `collection_foreign` if it belongs to
        another tenant, `IndexDamaged` if it is unreadable."""

    def set_aside(self, placement: Placement) -> None:
        """Move an unreadable generation out of the way, so that a new one can be created."""
        return

    def activate(self, placement: Placement) -> None:
        """Point the collection's alias at this generation, if the engine has aliases."""
        return

    def remove(self, placement: Placement) -> None:
        """Delete a generation if it exists."""

    def close(self) -> None:
        """Disconnect."""
        return

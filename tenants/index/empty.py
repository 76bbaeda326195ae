"""Empty collection for tenants without an index. Reading never creates anything."""

from collections.abc import Iterator, Mapping, Sequence

from tenants.core.errors import InternalFault
from tenants.core.json import Json
from tenants.core.points import Conditions, Hit, Point, Vector
from tenants.index.layout import check_queries


class EmptyCollection:
    """A collection without points."""

    encoder = ""
    dimensions = 0
    version = None
    broken = False

    def upsert(self, points: Sequence[Point]) -> None:  # noqa: ARG002
        """Raise `InternalFault`: writers open with `create=True`."""
        raise InternalFault("collection_missing")

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        """Do nothing."""

    def delete(self, ids: Sequence[str]) -> None:
        """Do nothing."""

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,  # noqa: ARG002
        conditions: Conditions | None = None,  # noqa: ARG002
        payloads: bool = True,  # noqa: ARG002
    ) -> Mapping[str, list[Hit]]:
        """Return no hits for any vector."""
        check_queries(queries, self.dimensions)
        return {name: [] for name in queries}

    def inverse_frequencies(self, dimensions: Sequence[int]) -> Mapping[int, float]:  # noqa: ARG002
        """Return no frequencies."""
        return {}

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:  # noqa: ARG002
        """Return no points."""
        return []

    def scan(
        self,
        *,
        conditions: Conditions | None = None,  # noqa: ARG002
        batch: int = 256,  # noqa: ARG002
        dense: bool = False,  # noqa: ARG002
    ) -> Iterator[Hit]:
        """Return no points."""
        return iter(())

    def count(self) -> int:
        """Return zero."""
        return 0

    def close(self) -> None:
        """Do nothing."""

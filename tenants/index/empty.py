"""What a tenant without a collection reads: nothing. Reading never creates anything."""

from collections.abc import Iterator, Mapping, Sequence

from tenants.errors import InternalFault
from tenants.index.layout import check_queries
from tenants.index.protocol import Conditions, Hit, Json, Point, Weights


class EmptyCollection:
    """A collection that is not there."""

    encoder = ""

    def upsert(self, points: Sequence[Point]) -> None:  # noqa: ARG002
        """Refused: writers open with `create=True`."""
        raise InternalFault("collection_missing")

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        """Nothing to describe."""

    def delete(self, ids: Sequence[str]) -> None:
        """Nothing to remove."""

    def search(
        self,
        queries: Mapping[str, Weights],
        *,
        limit: int,  # noqa: ARG002
        conditions: Conditions | None = None,  # noqa: ARG002
        payloads: bool = True,  # noqa: ARG002
    ) -> Mapping[str, list[Hit]]:
        """No hit for any vector."""
        check_queries(queries)
        return {name: [] for name in queries}

    def fetch(self, ids: Sequence[str]) -> list[Hit]:  # noqa: ARG002
        """No point."""
        return []

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256) -> Iterator[Hit]:  # noqa: ARG002
        """No point."""
        return iter(())

    def count(self) -> int:
        """Zero."""
        return 0

    def close(self) -> None:
        """Nothing to release."""

"""Layout of chunks in every backend, and the checks that Qdrant leaves to its callers."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from math import isfinite
from uuid import UUID

import numpy as np

from tenants.core.errors import InternalFault, Invalid
from tenants.core.points import Conditions, Dense, Point, Sparse, Vector

SPARSE = "text-sparse"
"""The sparse vector of a chunk, weighted by inverse document frequency at query time."""

DENSE = "text-dense"
"""Its dense vector, in a collection that has a space for one."""

KEYWORDS = ("tenant", "doc_id", "project_key", "tags", "source_type", "evidence_tier", "status")
"""Fields of `meta` that filters compare by value."""

DATES = ("updated_at",)
"""Fields of `meta` that filters compare by day."""

_DIMENSIONS = 2**32
_FLOAT32_MAX = 3.4e38


def canonical_id(point_id: str) -> str:
    """Return a UUID in the spelling that backends use. Raises `InternalFault` on any other value."""
    try:
        return str(UUID(point_id))
    except ValueError as malformed:
        raise InternalFault("point_malformed") from malformed


def check_points(points: Sequence[Point], dimensions: int) -> None:
    """Raise `InternalFault` when a point could not be found again: NaN, infinity, unknown vector, impossible dimension.

    The engine stores NaN without a word, and a point that scores NaN ranks anywhere.

    :param dimensions: of the collection's dense vectors.
    """
    for point in points:
        canonical_id(point.id)
        for name, vector in point.vectors.items():
            if not _is_valid(name, vector, dimensions):
                raise InternalFault("point_malformed")


def _is_valid(name: str, vector: Vector | Sparse, dimensions: int) -> bool:
    if isinstance(vector, Sparse):
        return name == SPARSE and _sparse(vector)
    if not isinstance(vector, Mapping):
        return name == DENSE and _dense(vector, dimensions)
    # The sum is finite only if every weight is; comparing it costs a hundredth of looking at each.
    if name != SPARSE or not -_FLOAT32_MAX < sum(vector.values()) < _FLOAT32_MAX:
        return False
    return not vector or (min(vector) >= 0 and max(vector) < _DIMENSIONS)


def _sparse(vector: Sparse) -> bool:
    named, weights = vector.dimensions, vector.weights
    ascend = len(named) == len(weights) and bool((named[1:] > named[:-1]).all())
    return ascend and named.dtype == np.uint32 and -_FLOAT32_MAX < weights.sum() < _FLOAT32_MAX


def _dense(vector: Dense, dimensions: int) -> bool:
    return 0 < dimensions == len(vector) and isfinite(sum(vector))


def check_queries(queries: Mapping[str, Vector], dimensions: int) -> None:
    """Raise `InternalFault` on a vector that the collection does not have.

    :param dimensions: of the collection's dense vectors.
    """
    for name, vector in queries.items():
        exists = name == SPARSE if isinstance(vector, Mapping) else name == DENSE and _dense(vector, dimensions)
        if not exists:
            raise InternalFault("vector_unknown")


def searchable_vectors(
    queries: Mapping[str, Vector], limit: int, conditions: Conditions | None, dimensions: int
) -> list[str]:
    """Check the queries; return the vectors that can have hits.

    :param dimensions: of the collection's dense vectors.
    """
    check_queries(queries, dimensions)
    if limit < 1 or matches_nothing(conditions):
        return []
    return [name for name, vector in queries.items() if vector]


def matches_nothing(conditions: Conditions | None) -> bool:
    """Whether a field accepts no value at all. Qdrant itself drops such a condition in places, so it never sees one."""
    return conditions is not None and any(not accepted for accepted in conditions.any_of.values())


def day_bounds(bounds: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
    """Convert (first day, last day) to moments (at or after, before), so that the last day is included.

    Raises `Invalid` with the code `filter_invalid` for an invalid ISO 8601 day.
    """
    first, last = bounds
    with Invalid("filter_invalid").instead_of(ValueError, OverflowError):
        start = date.fromisoformat(first) if first else None
        end = date.fromisoformat(last) + timedelta(days=1) if last else None
    return _midnight(start), _midnight(end)


def _midnight(day: date | None) -> str | None:
    return f"{day.isoformat()}T00:00:00Z" if day else None

"""How chunks lie in every backend, and the checks that Qdrant leaves to its callers."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from uuid import UUID

from tenants.errors import InternalFault, Invalid
from tenants.index.protocol import Conditions, Point, Weights

VECTORS = ("text-sparse", "grams", "headings")
"""The sparse vectors of a chunk, each weighted by inverse document frequency at query time."""

KEYWORDS = ("tenant", "doc_id", "project_key", "tags", "source_type", "evidence_tier", "status")
"""Fields of `meta` that filters compare by value."""

DATES = ("updated_at",)
"""Fields of `meta` that filters compare by day."""

_DIMENSIONS = 2**32
_FLOAT32_MAX = 3.4e38


def canonical_id(point_id: str) -> str:
    """A UUID in the one spelling that backends answer with. Raises `InternalFault` on anything else."""
    try:
        return str(UUID(point_id))
    except ValueError as malformed:
        raise InternalFault("point_malformed") from malformed


def check_points(points: Sequence[Point]) -> None:
    """Raise `InternalFault` when a point could not be found again: NaN, infinity, unknown vector, impossible dimension.

    The engine stores NaN without a word, and a point that scores NaN ranks anywhere.
    """
    for point in points:
        canonical_id(point.id)
        for name, weights in point.vectors.items():
            if name not in VECTORS:
                raise InternalFault("point_malformed")
            # The sum is finite only if every weight is; comparing it costs a hundredth of looking at each.
            if not -_FLOAT32_MAX < sum(weights.values()) < _FLOAT32_MAX:
                raise InternalFault("point_malformed")
            if weights and not (min(weights) >= 0 and max(weights) < _DIMENSIONS):
                raise InternalFault("point_malformed")


def check_queries(queries: Mapping[str, object]) -> None:
    """Raise `InternalFault` on a vector that no collection has."""
    if not queries.keys() <= set(VECTORS):
        raise InternalFault("vector_unknown")


def worth_asking(queries: Mapping[str, Weights], limit: int, conditions: Conditions | None) -> list[str]:
    """The vectors among `queries`, checked, that can find anything."""
    check_queries(queries)
    if limit < 1 or nothing_matches(conditions):
        return []
    return [name for name, weights in queries.items() if weights]


def nothing_matches(conditions: Conditions | None) -> bool:
    """Whether a field accepts no value at all. Qdrant itself drops such a condition in places, so it never sees one."""
    return conditions is not None and any(not accepted for accepted in conditions.any_of.values())


def day_bounds(bounds: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
    """Turn (first day, last day) into moments (at or after, before), so that the whole last day is inside.

    Raises `Invalid` with the code `filter_invalid` on what is no ISO 8601 day.
    """
    first, last = bounds
    try:
        start = date.fromisoformat(first) if first else None
        end = date.fromisoformat(last) + timedelta(days=1) if last else None
    except (ValueError, OverflowError) as malformed:
        raise Invalid("filter_invalid") from malformed
    return _midnight(start), _midnight(end)


def _midnight(day: date | None) -> str | None:
    return f"{day.isoformat()}T00:00:00Z" if day else None

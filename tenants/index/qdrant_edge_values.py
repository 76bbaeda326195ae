"""Points, vectors and conditions as the embedded engine takes them and gives them back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from qdrant_edge import FieldCondition, Filter, MatchAny, RangeDateTime, SparseVector

from tenants.core.points import Conditions, Dense, Hit, Sparse, Vector
from tenants.index.layout import DENSE, day_bounds

if TYPE_CHECKING:  # the engine's stubs name these; the compiled module does not
    from qdrant_edge import ConditionType, NamedVector, Record


def as_vector(vector: Vector | Sparse) -> "NamedVector":
    """Convert a vector for searching or storing."""
    if isinstance(vector, Sparse):
        return SparseVector(vector.dimensions.tolist(), vector.weights.tolist())
    if isinstance(vector, Mapping):
        return SparseVector(list(vector), list(vector.values()))
    return list(vector)


def as_vectors(vectors: Mapping[str, Vector | Sparse]) -> "dict[str, NamedVector]":
    """Convert the vectors of a point, by name."""
    return {name: as_vector(vector) for name, vector in vectors.items()}


def as_hit(record: "Record") -> Hit:
    """Convert a stored point to a hit."""
    return Hit(str(record.id), 0.0, record.payload or {}, as_dense(record))


def as_dense(record: "Record") -> Dense | None:
    """Return the dense vector of a stored point; None if it has none, or it was not requested."""
    stored = record.vector.get(DENSE) if isinstance(record.vector, Mapping) else None
    return [float(number) for number in stored if isinstance(number, float)] if isinstance(stored, list) else None


def as_filter(conditions: Conditions | None) -> Filter | None:
    """Convert conditions to a filter; None if every point matches."""
    if conditions is None:
        return None
    must: list[ConditionType] = [
        FieldCondition(path, match=MatchAny(list(values))) for path, values in conditions.any_of.items()
    ]
    for path, bounds in conditions.between.items():
        start, end = day_bounds(bounds)
        if start or end:
            must.append(FieldCondition(path, range=RangeDateTime(gte=start, lt=end)))
    return Filter(must=must) if must else None

"""A collection with a document on trial: searched as if its chunks were stored.

A sparse score depends on the weights of the question and of the chunk, and on the inverse document frequency, which
the document's own chunks change a little. The engine's current frequency gives the number of chunks with a dimension,
and so the frequency with the document, and the factor for the question's weights that makes the engine score as it
would after storing the document.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt

from tenants.core.errors import InternalFault
from tenants.core.json import Json
from tenants.core.points import Conditions, Dense, Hit, Point, Sparse, Vector, Weights
from tenants.index.layout import DENSE, SPARSE, check_queries, day_bounds
from tenants.index.protocol import Collection
from tenants.knowledge.trial_document import TrialDocument


class TrialCollection(Collection):
    """The tenant's chunks and those of a document on trial. Only for reading."""

    def __init__(self, stored: Collection, document: TrialDocument) -> None:
        self.encoder = stored.encoder or document.encoder
        self.dimensions = stored.dimensions if stored.encoder else document.dimensions
        self._stored = stored
        self._points = {point.id: point for point in document.chunks.points}
        self._sparse = {point.id: _weights(point) for point in document.chunks.points}
        self._replaced = frozenset(point.id for point in document.replaced.points) - self._points.keys()
        self._hidden = self._replaced | self._points.keys()
        self._old = [_weights(point) for point in document.replaced.points]
        self._count = stored.count()
        self._frequencies: dict[int, tuple[float, float]] = {}

    def upsert(self, points: Sequence[Point]) -> None:  # noqa: ARG002
        raise InternalFault("index_on_trial")

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:  # noqa: ARG002
        raise InternalFault("index_on_trial")

    def delete(self, ids: Sequence[str]) -> None:  # noqa: ARG002
        raise InternalFault("index_on_trial")

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,
        conditions: Conditions | None = None,
        payloads: bool = True,
    ) -> Mapping[str, list[Hit]]:
        """Return the best `limit` hits for each named vector, including the document on trial."""
        check_queries(queries, self.dimensions)
        query = queries.get(SPARSE, {})
        frequencies = self._inverse_frequencies(query) if isinstance(query, Mapping) else {}
        stored = self._search_stored(queries, frequencies, limit + len(self._hidden), conditions, payloads)
        matching = [point for point in self._points.values() if _matches(point.payload, conditions)]
        ranked: dict[str, list[Hit]] = {}
        for name, vector in queries.items():
            own = []
            for point in matching:
                score = self._score(point, vector, frequencies)
                if score is not None:
                    own.append(Hit(point.id, score, point.payload if payloads else {}))
            both = [*(hit for hit in stored[name] if hit.id not in self._hidden), *own]
            ranked[name] = sorted(both, key=lambda hit: -hit.score)[:limit]
        return ranked

    def inverse_frequencies(self, dimensions: Sequence[int]) -> Mapping[int, float]:
        """Return the inverse frequencies, including the document on trial."""
        known = self._inverse_frequencies(dimensions)
        return {dimension: known[dimension][1] for dimension in dimensions}

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        others = [point_id for point_id in ids if point_id not in self._hidden]
        stored = {hit.id: hit for hit in self._stored.fetch(others, dense=dense)}
        own = {
            point_id: Hit(point_id, 0.0, self._points[point_id].payload, _normal(self._points[point_id], dense))
            for point_id in ids
            if point_id in self._points
        }
        both = stored | own
        return [both[point_id] for point_id in ids if point_id in both]

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        for hit in self._stored.scan(conditions=conditions, batch=batch, dense=dense):
            if hit.id not in self._hidden:
                yield hit
        for point in self._points.values():
            if _matches(point.payload, conditions):
                yield Hit(point.id, 0.0, point.payload, _normal(point, dense))

    def count(self) -> int:
        """Return the number of points, including those on trial."""
        return self._count - len(self._old) + len(self._points)

    def _search_stored(
        self,
        queries: Mapping[str, Vector],
        frequencies: Mapping[int, tuple[float, float]],
        limit: int,
        conditions: Conditions | None,
        payloads: bool,
    ) -> Mapping[str, list[Hit]]:
        if not self._count:
            return {name: [] for name in queries}
        adjusted: dict[str, Vector] = {}
        for name, query in queries.items():
            adjusted[name] = query
            if isinstance(query, Mapping):
                now = {dimension: frequencies[dimension] for dimension in query}
                adjusted[name] = {
                    dimension: weight * now[dimension][1] / now[dimension][0]
                    for dimension, weight in query.items()
                    if now[dimension][0]
                }
        return self._stored.search(adjusted, limit=limit, conditions=conditions, payloads=payloads)

    def _score(self, point: Point, query: Vector, frequencies: Mapping[int, tuple[float, float]]) -> float | None:
        """Score the chunk as the engine would; None if the engine would not find it."""
        if not isinstance(query, Mapping):
            dense = _normal(point, True)
            return None if dense is None else _cosine(query, dense)
        weights = self._sparse[point.id]
        shared = query.keys() & weights.keys()
        if not shared:
            return None
        return sum(query[dimension] * frequencies[dimension][1] * weights[dimension] for dimension in shared)

    def _inverse_frequencies(self, dimensions: Iterable[int]) -> Mapping[int, tuple[float, float]]:
        """Return for each dimension the stored inverse frequency, 0 for an unknown one, and the one on trial."""
        unknown = [dimension for dimension in dimensions if dimension not in self._frequencies]
        stored = self._stored.inverse_frequencies(unknown) if unknown and self._count else {}
        for dimension in unknown:
            now = stored.get(dimension, 0.0)
            self._frequencies[dimension] = now, self._on_trial(dimension, now)
        return self._frequencies

    def _on_trial(self, dimension: int, now: float) -> float:
        """Return the inverse frequency with the document, BM25's log(1 + (N - n + 0.5) / (n + 0.5))."""
        holding = 0.0
        if now:
            odds = exp(now) - 1
            holding = (self._count + 0.5 - 0.5 * odds) / (1 + odds)
        holding -= sum(dimension in weights for weights in self._old)
        holding += sum(dimension in weights for weights in self._sparse.values())
        holding = max(0.0, holding)
        return log(1 + max(0.0, self.count() - holding + 0.5) / (holding + 0.5))


def _weights(point: Point) -> Weights:
    """Return the sparse vector of a point as a mapping."""
    vector = point.vectors.get(SPARSE, {})
    if isinstance(vector, Sparse):
        return dict(zip(vector.dimensions.tolist(), vector.weights.tolist(), strict=True))
    return vector if isinstance(vector, Mapping) else {}


def _normal(point: Point, wanted: bool) -> Dense | None:
    """Return the point's normalised dense vector, as engines store it."""
    vector = point.vectors.get(DENSE)
    if not wanted or vector is None or isinstance(vector, Mapping | Sparse):
        return None
    length = sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]


def _cosine(query: Dense, unit: Dense) -> float:
    length = sqrt(sum(number * number for number in query)) or 1.0
    return sum(one * other for one, other in zip(query, unit, strict=True)) / length


def _matches(payload: Mapping[str, Json], conditions: Conditions | None) -> bool:
    if conditions is None:
        return True
    for path, accepted in conditions.any_of.items():
        value = _at(payload, path)
        values = value if isinstance(value, list | tuple) else [value]
        if not any(one in accepted for one in values):
            return False
    for path, bounds in conditions.between.items():
        start, end = day_bounds(bounds)
        value = _at(payload, path)
        if not isinstance(value, str) or (start and value < start[:10]) or (end and value >= end[:10]):
            return False
    return True


def _at(payload: Mapping[str, Json], path: str) -> Json:
    value: Json = payload
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value

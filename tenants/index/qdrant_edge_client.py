"""The part of `QdrantClient` that `QdrantDocumentStore` reads by, on a collection of the embedded engine.

Requests and answers are the client's own models, so that the stock methods run unchanged. Writing goes through the
collection itself.
"""
# ruff: noqa: ANN401, ARG002 - the signatures are those of the client

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from qdrant_client.http import models
from qdrant_edge import (
    CountRequest,
    FieldCondition,
    Filter,
    Fusion,
    HasIdCondition,
    MatchValue,
    Prefetch,
    Query,
    QueryRequest,
    RangeDateTime,
    RangeFloat,
    ScrollRequest,
    SparseVector,
)

from tenants.index.layout import DENSE, SPARSE
from tenants.index.qdrant_edge import EdgeCollection

if TYPE_CHECKING:
    from qdrant_edge import PointId, Record, ScoredPoint

_RRF_K = 2
"""Qdrant's own constant."""

_HITS_PER_GROUP = 10
"""Hits that are looked at for each group wanted, because the engine does not group."""


class EdgeClient:
    """Reads of one collection of the embedded engine."""

    def __init__(self, collection: EdgeCollection) -> None:
        self._collection = collection

    def get_collection(self, collection_name: str) -> Any:
        """Describe no payload schema: the caller then inspects the points."""
        return SimpleNamespace(payload_schema={})

    def count(self, collection_name: str, count_filter: models.Filter | None = None) -> models.CountResult:
        """Count the points that match."""
        with self._collection.reading() as shard:
            return models.CountResult(count=shard.count(CountRequest(exact=True, filter=edge_filter(count_filter))))

    def scroll(
        self,
        collection_name: str,
        scroll_filter: models.Filter | None = None,
        limit: int = 256,
        offset: Any = None,
        with_payload: Any = True,
        with_vectors: Any = False,
    ) -> "tuple[list[models.Record], PointId | None]":
        """Return a page of the points that match, and where the next one begins."""
        request = ScrollRequest(
            offset=offset,
            limit=limit,
            filter=edge_filter(scroll_filter),
            with_payload=bool(with_payload),
            with_vector=self._vectors(with_vectors),
        )
        with self._collection.reading() as shard:
            records, following = shard.scroll(request)
        return [
            models.Record(id=str(record.id), payload=_payload(record), vector=_vector(record)) for record in records
        ], following

    def query_points(self, collection_name: str, query: Any, limit: int, **parameters: Any) -> models.QueryResponse:
        """Return the best points for a vector, or for the fusion of several."""
        return models.QueryResponse(points=self._query(query, limit, **parameters))

    def query_points_groups(
        self,
        collection_name: str,
        query: Any,
        limit: int,
        group_by: str,
        group_size: int,
        **parameters: Any,
    ) -> models.GroupsResult:
        """Return the best points of each of the best groups, among the best points of all."""
        groups: dict[Any, list[models.ScoredPoint]] = {}
        for point in self._query(query, limit * group_size * _HITS_PER_GROUP, **parameters):
            for value in _values(point.payload or {}, group_by):
                if value in groups or len(groups) < limit:
                    groups.setdefault(value, []).append(point)
        return models.GroupsResult(
            groups=[models.PointGroup(id=value, hits=hits[:group_size]) for value, hits in groups.items()]
        )

    def _query(
        self,
        query: Any,
        limit: int,
        using: str = DENSE,
        query_filter: models.Filter | None = None,
        prefetch: Sequence[models.Prefetch] = (),
        score_threshold: float | None = None,
        with_vectors: Any = False,
        with_payload: Any = True,
    ) -> list[models.ScoredPoint]:
        request = QueryRequest(
            limit=limit,
            query=_query(query, using),
            prefetches=[
                Prefetch(
                    limit=part.limit or limit,
                    query=_query(part.query, part.using or DENSE),
                    filter=edge_filter(part.filter) if isinstance(part.filter, models.Filter) else None,
                )
                for part in prefetch
            ],
            filter=edge_filter(query_filter),
            score_threshold=score_threshold,
            with_vector=self._vectors(with_vectors),
            with_payload=bool(with_payload),
        )
        with self._collection.reading() as shard:
            points = shard.query(request)
        return [
            models.ScoredPoint(
                id=str(point.id),
                version=point.version,
                score=point.score,
                payload=_payload(point),
                vector=_vector(point),
            )
            for point in points
        ]

    def _vectors(self, wanted: Any) -> bool | list[str]:
        names = [DENSE, SPARSE] if wanted is True else list(wanted or ())
        return [name for name in names if name != DENSE or self._collection.dimensions] or False


def edge_filter(native: models.Filter | None) -> Filter | None:
    """Convert Qdrant filters made from Haystack's to those of the embedded engine."""
    if native is None:
        return None
    return Filter(
        must=[*_conditions(native.must)] or None,
        should=[*_conditions(native.should)] or None,
        must_not=[*_conditions(native.must_not)] or None,
    )


def _conditions(native: Any) -> Iterator[Any]:
    for condition in native if isinstance(native, list) else [native] if native else []:
        if isinstance(condition, models.Filter):
            yield edge_filter(condition)
        elif isinstance(condition, models.HasIdCondition):
            yield HasIdCondition(set(map(str, condition.has_id)))
        elif isinstance(condition.match, models.MatchValue):
            yield FieldCondition(condition.key, match=MatchValue(condition.match.value))
        elif isinstance(condition.range, models.DatetimeRange):
            bounds = condition.range.model_dump(exclude_none=True)
            yield FieldCondition(
                condition.key, range=RangeDateTime(**{name: moment.isoformat() for name, moment in bounds.items()})
            )
        else:
            yield FieldCondition(condition.key, range=RangeFloat(**condition.range.model_dump(exclude_none=True)))


def _query(query: Any, using: str) -> Any:
    if isinstance(query, models.RrfQuery):
        return Fusion.Rrf(k=query.rrf.k or _RRF_K, weights=query.rrf.weights)
    if isinstance(query, models.SparseVector):
        return Query.Nearest(SparseVector(query.indices, query.values), using=using)
    return Query.Nearest([float(number) for number in query], using=using)


def _payload(record: "Record | ScoredPoint") -> dict[str, Any]:
    return dict(record.payload or {})


def _vector(record: "Record | ScoredPoint") -> Any:
    if not isinstance(record.vector, Mapping):
        return None
    return {
        name: models.SparseVector(indices=vector.indices, values=vector.values)
        if isinstance(vector, SparseVector)
        else vector
        for name, vector in record.vector.items()
    }


def _values(payload: Mapping[str, Any], path: str) -> list[Any]:
    value: Any = payload
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else [] if value is None else [value]

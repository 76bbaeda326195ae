"""Qdrant by URL, or in memory for tests: the same chunks through `QdrantClient`.

The permanent name of a dedicated collection is always an alias, so a new generation can replace it in one step.
Payloads and the vector `text-sparse` have the layout of `QdrantDocumentStore`, so stock Haystack tools can read it.

A collection that tenants share has no alias and belongs to none of them; `tenants.index.partition` keeps them apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from json import JSONDecodeError
from threading import RLock

from pydantic import ValidationError
from qdrant_client import QdrantClient
from qdrant_client.http import models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from tenants.accounts.registry import Placement
from tenants.core.errors import InternalFault, TryAgain
from tenants.core.json import Json
from tenants.core.points import Conditions, Dense, Hit, Point, Sparse, Vector
from tenants.index.layout import (
    DATES,
    DENSE,
    KEYWORDS,
    SPARSE,
    canonical_id,
    check_points,
    day_bounds,
    matches_nothing,
    searchable_vectors,
)
from tenants.index.partition import TENANT, Partition
from tenants.index.protocol import Collection, Engine

IN_MEMORY = ":memory:"
_TENANT = "opora_tenant"
_SLICE = 128
_INDEXED = {
    **{f"meta.{name}": models.PayloadSchemaType.KEYWORD for name in KEYWORDS},
    **{f"meta.{name}": models.PayloadSchemaType.DATETIME for name in DATES},
}
_PARTITIONED = {TENANT: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)}
"""Index of a shared collection: keeps the points of a generation together on the disk."""


class QdrantServer(Engine):
    """A connection to a server, shared by all collections.

    :param url: of the server, or `:memory:`.
    :param replicas: of each new collection, on different nodes of a cluster.
    :param written_replicas: number of replicas that must confirm a write.
    """

    def __init__(self, url: str, api_key: str = "", *, replicas: int = 1, written_replicas: int = 1) -> None:
        self.in_memory = url == IN_MEMORY
        self._replicas = replicas
        self._written_replicas = written_replicas
        # The in-memory engine is not thread-safe; a server handles concurrent callers.
        self._one_at_a_time: AbstractContextManager[object] = RLock() if self.in_memory else nullcontext()
        # The version check is a separate request, with separate errors.
        self._client = QdrantClient(location=url, api_key=api_key or None, check_compatibility=False)

    @contextmanager
    def call(self) -> Iterator[QdrantClient]:
        """Return the client; convert its errors to ours: retry if unreachable or overloaded, otherwise a fault."""
        with self._one_at_a_time:
            try:
                yield self._client
            except (ResponseHandlingException, JSONDecodeError, ValidationError) as unreachable:
                raise TryAgain("index_unavailable") from unreachable
            except UnexpectedResponse as refused:
                # 401 and 403: a key that is being replaced, or a collection locked for writing.
                if refused.status_code in {None, 401, 403, 408, 429} or (refused.status_code or 0) >= 500:
                    raise TryAgain("index_unavailable") from refused
                raise InternalFault("index_failed") from refused

    def exists(self, placement: Placement) -> bool:
        """Return whether the collection was made, payload indexes included, and not removed."""
        with self.call() as client:
            if self.in_memory:
                return client.collection_exists(placement.stored_in)
            try:
                schema = client.get_collection(placement.stored_in).payload_schema
            except UnexpectedResponse as missing:
                # A proxy may answer so too.
                if missing.status_code != 404 or client.collection_exists(placement.stored_in):
                    raise
                return False
            return schema.keys() >= _indexes(placement).keys()

    def create(self, placement: Placement, tenant_id: str, dimensions: int = 0) -> None:
        name = placement.stored_in
        with self.call() as client:
            if not client.collection_exists(name):
                try:
                    self._create(client, placement, tenant_id, dimensions)
                except UnexpectedResponse as clash:
                    if clash.status_code != 409:
                        raise
            if not self.in_memory:  # which has no payload indexes, and warns
                for path, kind in _indexes(placement).items():
                    client.create_payload_index(name, path, kind, wait=True)

    def _create(self, client: QdrantClient, placement: Placement, tenant_id: str, dimensions: int) -> None:
        # `QdrantDocumentStore` opens no collection that does not declare its dense vector. Without one no point has it.
        dense = models.VectorParams(size=dimensions or 1, distance=models.Distance.COSINE)
        client.create_collection(
            placement.stored_in,
            vectors_config={DENSE: dense},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            # A shared collection needs no graph: dense vectors of a small tenant are compared one by one.
            hnsw_config=models.HnswConfigDiff(m=0) if placement.shared else None,
            optimizers_config=models.OptimizersConfigDiff(default_segment_number=2),
            # Qdrant counts document frequencies per shard, so a tenant must not be spread over several.
            shard_number=1,
            replication_factor=self._replicas,
            write_consistency_factor=self._written_replicas,
            metadata={_TENANT: _owner(placement, tenant_id)},
        )

    def open(self, placement: Placement, tenant_id: str, encoder: str, dimensions: int = 0) -> "ServerCollection":
        partition = self._partition(placement)
        metadata = partition.get_collection().config.metadata or {}
        if metadata.get(_TENANT) != _owner(placement, tenant_id):
            raise InternalFault("collection_foreign")
        return ServerCollection(partition, encoder, dimensions)

    def activate(self, placement: Placement) -> None:
        """Point the collection's alias, which stock tools open, at this generation; a shared collection has none."""
        delete = models.DeleteAlias(alias_name=placement.collection)
        alias = models.CreateAlias(collection_name=placement.physical, alias_name=placement.collection)
        with self.call() as client:
            aliases = {alias.alias_name for alias in client.get_aliases().aliases}
            changes: list[models.AliasOperations] = []
            if placement.collection in aliases:
                changes.append(models.DeleteAliasOperation(delete_alias=delete))
            if not placement.shared:
                changes.append(models.CreateAliasOperation(create_alias=alias))
            if changes:
                client.update_collection_aliases(changes)

    def remove(self, placement: Placement) -> None:
        """Delete a generation if it exists; a shared collection keeps those of other tenants."""
        self._partition(placement).clear()

    def _partition(self, placement: Placement) -> Partition:
        return Partition(self.call, placement.stored_in, placement.physical if placement.shared else "")

    def close(self) -> None:
        self._client.close()


class ServerCollection(Collection):
    """A tenant's chunks on a server, in a dedicated collection or in a shared one.

    It is addressed by the name of the generation, not by the alias: encoder and searched generation must stay the same
    while another process switches.

    :param partition: the generation's part of the collection, and the client of stock document stores.
    """

    def __init__(self, partition: Partition, encoder: str = "", dimensions: int = 0) -> None:
        self.client = partition
        self.encoder = encoder
        self.dimensions = dimensions

    @property
    def broken(self) -> bool:
        """Whether the collection was removed."""
        return self.client.missing

    @property
    def name(self) -> str:
        """Return the name of the collection on the server."""
        return self.client.collection

    def upsert(self, points: Sequence[Point]) -> None:
        check_points(points, self.dimensions)
        for start in range(0, len(points), _SLICE):
            batch = [
                models.PointStruct(
                    id=canonical_id(point.id),
                    vector={name: _vector(vector) for name, vector in point.vectors.items()},
                    payload=dict(point.payload),
                )
                for point in points[start : start + _SLICE]
            ]
            self.client.upsert(batch)

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        named = [(canonical_id(point_id), payload) for point_id, payload in payloads.items()]
        for start in range(0, len(named), _SLICE):
            self.client.overwrite_payloads(dict(named[start : start + _SLICE]))

    def delete(self, ids: Sequence[str]) -> None:
        if ids:
            self.client.delete([canonical_id(point_id) for point_id in ids])

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,
        conditions: Conditions | None = None,
        payloads: bool = True,
    ) -> Mapping[str, list[Hit]]:
        """Return the best `limit` hits for each named vector, all vectors in one request."""
        names = searchable_vectors(queries, limit, conditions, self.dimensions)
        if not names:
            return {name: [] for name in queries}
        matching = _filter(conditions)
        requests = [
            models.QueryRequest(
                query=_vector(queries[name]), using=name, limit=limit, filter=matching, with_payload=payloads
            )
            for name in names
        ]
        answers = self.client.query_batch_points(requests)
        hits = {
            name: [Hit(str(point.id), point.score, point.payload or {}) for point in answer.points]
            for name, answer in zip(names, answers, strict=True)
        }
        return {name: hits.get(name, []) for name in queries}

    def inverse_frequencies(self, dimensions: Sequence[int]) -> Mapping[int, float]:
        """Return the server's factor for each of these dimensions: the score of the best hit divided by its weight."""
        requests = [
            models.QueryRequest(
                query=models.SparseVector(indices=[one], values=[1.0]), using=SPARSE, limit=1, with_vector=[SPARSE]
            )
            for one in dimensions
        ]
        if not requests:
            return {}
        answers = self.client.query_batch_points(requests)
        frequencies = {}
        for one, answer in zip(dimensions, answers, strict=True):
            for point in answer.points:
                vector = point.vector.get(SPARSE) if isinstance(point.vector, dict) else None
                if isinstance(vector, models.SparseVector):
                    frequencies[one] = point.score / vector.values[vector.indices.index(one)]
        return frequencies

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        point_ids = [canonical_id(point_id) for point_id in ids]
        if not point_ids:
            return []
        records = self.client.fetch(point_ids, with_vectors=_wanted(dense))
        hits = {str(record.id): _hit(record) for record in records}
        return [hits[point_id] for point_id in point_ids if point_id in hits]

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        """Yield every stored point. Points written meanwhile may or may not appear."""
        if matches_nothing(conditions):
            return
        matching = _filter(conditions)
        offset = None
        while True:
            records, offset = self.client.scroll(
                scroll_filter=matching, limit=batch, offset=offset, with_vectors=_wanted(dense)
            )
            for record in records:
                yield _hit(record)
            if offset is None:
                return

    def count(self) -> int:
        return self.client.count().count


def _indexes(placement: Placement) -> Mapping[str, models.PayloadSchemaType | models.KeywordIndexParams]:
    return {**_INDEXED, **_PARTITIONED} if placement.shared else _INDEXED


def _owner(placement: Placement, tenant_id: str) -> str:
    """Return the owner in the metadata of a collection; a shared one has no owner."""
    return "" if placement.shared else tenant_id


def _vector(vector: Vector | Sparse) -> models.SparseVector | list[float]:
    if isinstance(vector, Sparse):
        return models.SparseVector(indices=vector.dimensions.tolist(), values=vector.weights.tolist())
    if isinstance(vector, Mapping):
        return models.SparseVector(indices=list(vector), values=list(vector.values()))
    return list(vector)


def _wanted(dense: bool) -> bool | list[str]:
    return [DENSE] if dense else False


def _hit(record: models.Record) -> Hit:
    return Hit(str(record.id), 0.0, record.payload or {}, _dense(record.vector))


def _dense(stored: object) -> Dense | None:
    vector = stored.get(DENSE) if isinstance(stored, Mapping) else None
    return [float(number) for number in vector] if isinstance(vector, Sequence) else None


def _filter(conditions: Conditions | None) -> models.Filter | None:
    if conditions is None:
        return None
    must: list[models.Condition] = [
        models.FieldCondition(key=path, match=models.MatchAny(any=list(values)))
        for path, values in conditions.any_of.items()
    ]
    for path, bounds in conditions.between.items():
        start, end = day_bounds(bounds)
        if start or end:
            must.append(models.FieldCondition(key=path, range=models.DatetimeRange(gte=start, lt=end)))
    return models.Filter(must=must) if must else None

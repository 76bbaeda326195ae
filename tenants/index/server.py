"""Qdrant by URL, or in memory for tests: the same chunks through `QdrantClient`.

The permanent name of a collection is always an alias, so a new generation can replace it in one step. Payloads and the
vector `text-sparse` have the layout of `QdrantDocumentStore`, so stock Haystack tools can read our collections.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from json import JSONDecodeError
from threading import RLock

from pydantic import ValidationError
from qdrant_client import QdrantClient
from qdrant_client.http import models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from tenants.accounts.registry import Placement
from tenants.core.errors import IndexDamaged, InternalFault, TryAgain
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

IN_MEMORY = ":memory:"
_TENANT = "opora_tenant"
_SLICE = 128
_INDEXED = {
    **{f"meta.{name}": models.PayloadSchemaType.KEYWORD for name in KEYWORDS},
    **{f"meta.{name}": models.PayloadSchemaType.DATETIME for name in DATES},
}


class QdrantServer:
    """A connection to a server, shared by all collections.

    :param url: of the server, or `:memory:`.
    """

    def __init__(self, url: str, api_key: str = "") -> None:
        self.in_memory = url == IN_MEMORY
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
        """Whether the generation was made, payload indexes included, and not removed."""
        with self.call() as client:
            if not client.collection_exists(placement.physical):
                return False
            return self.in_memory or client.get_collection(placement.physical).payload_schema.keys() >= _INDEXED.keys()

    def create(self, placement: Placement, tenant_id: str, dimensions: int = 0) -> None:
        """Make an empty generation. Running into another process that makes the same one is fine."""
        # `QdrantDocumentStore` opens no collection that does not declare its dense vector. Without one no point has it.
        dense = models.VectorParams(size=dimensions or 1, distance=models.Distance.COSINE)
        with self.call() as client:
            if not client.collection_exists(placement.physical):
                try:
                    client.create_collection(
                        placement.physical,
                        vectors_config={DENSE: dense},
                        sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                        optimizers_config=models.OptimizersConfigDiff(default_segment_number=2),
                        metadata={_TENANT: tenant_id},
                    )
                except UnexpectedResponse as clash:
                    if clash.status_code != 409:
                        raise
            if not self.in_memory:  # which has no payload indexes, and warns
                for path, kind in _INDEXED.items():
                    client.create_payload_index(placement.physical, path, kind, wait=True)

    def open(self, placement: Placement, tenant_id: str, encoder: str, dimensions: int = 0) -> "ServerCollection":
        """Open an existing generation."""
        return ServerCollection(self, placement, tenant_id, encoder, dimensions)

    def set_aside(self, placement: Placement) -> None:
        """Do nothing: a server's collection is missing or readable."""

    def activate(self, placement: Placement) -> None:
        """Point the collection's alias, which stock tools open, at this generation."""
        delete = models.DeleteAlias(alias_name=placement.collection)
        alias = models.CreateAlias(collection_name=placement.physical, alias_name=placement.collection)
        with self.call() as client:
            aliases = {alias.alias_name for alias in client.get_aliases().aliases}
            removal = [models.DeleteAliasOperation(delete_alias=delete)] if placement.collection in aliases else []
            client.update_collection_aliases([*removal, models.CreateAliasOperation(create_alias=alias)])

    def remove(self, placement: Placement) -> None:
        """Delete a generation if it exists."""
        with self.call() as client:
            client.delete_collection(placement.physical)

    def close(self) -> None:
        """Disconnect."""
        self._client.close()


class ServerCollection:
    """A tenant's chunks in one collection of a server.

    It is addressed by the name of the generation, not by the alias: encoder and searched generation must stay the same
    while another process switches.

    :param placement: the generation, created by `QdrantServer`.
    :param tenant_id: the expected owner. Raises `InternalFault` with the code `collection_foreign` for another one.
    :param encoder: the encoder settings of its vectors.
    :param dimensions: of its dense vectors; 0 for none.
    """

    version = None  # another process may write to it

    def __init__(
        self, server: QdrantServer, placement: Placement, tenant_id: str, encoder: str = "", dimensions: int = 0
    ) -> None:
        self._server = server
        self._name = placement.physical
        self.broken = False
        self.encoder = encoder
        self.dimensions = dimensions
        with self.call() as client:
            metadata = client.get_collection(self._name).config.metadata or {}
        if metadata.get(_TENANT) != tenant_id:
            raise InternalFault("collection_foreign")

    @property
    def client(self) -> "_Calls":
        """Return a client whose calls raise our errors."""
        return _Calls(self)

    @property
    def name(self) -> str:
        """Return the name of the collection on the server."""
        return self._name

    @contextmanager
    def call(self) -> Iterator[QdrantClient]:
        """Yield the client; convert its errors to ours."""
        with self._server.call() as client:
            try:
                yield client
            except (UnexpectedResponse, ValueError) as refused:
                # The collection was removed. In memory the client raises `ValueError`.
                if not client.collection_exists(self._name):
                    self.broken = True
                    raise IndexDamaged("missing") from refused
                raise

    def upsert(self, points: Sequence[Point]) -> None:
        """Store points, replacing those with the same id."""
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
            with self.call() as client:
                client.upsert(self._name, batch, wait=True)

    def describe(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        """Replace the payloads of points by id; unknown ids are ignored."""
        named = {canonical_id(point_id): payload for point_id, payload in payloads.items()}
        point_ids = list(named)
        for start in range(0, len(point_ids), _SLICE):
            with self.call() as client:
                # The engine fails on an id that it does not have.
                records = client.retrieve(self._name, point_ids[start : start + _SLICE], with_payload=False)
                changes = [_overwriting(str(record.id), named[str(record.id)]) for record in records]
                if changes:
                    client.batch_update_points(self._name, changes, wait=True)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        if not ids:
            return
        chosen: list[models.ExtendedPointId] = [canonical_id(point_id) for point_id in ids]
        with self.call() as client:
            client.delete(self._name, models.PointIdsList(points=chosen), wait=True)

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
        with self.call() as client:
            answers = client.query_batch_points(self._name, requests)
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
        with self.call() as client:
            answers = client.query_batch_points(self._name, requests)
        frequencies = {}
        for one, answer in zip(dimensions, answers, strict=True):
            for point in answer.points:
                vector = point.vector.get(SPARSE) if isinstance(point.vector, dict) else None
                if isinstance(vector, models.SparseVector):
                    frequencies[one] = point.score / vector.values[vector.indices.index(one)]
        return frequencies

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        """Return the stored points among `ids`, in their order."""
        point_ids = [canonical_id(point_id) for point_id in ids]
        if not point_ids:
            return []
        with self.call() as client:
            records = client.retrieve(self._name, point_ids, with_payload=True, with_vectors=_wanted(dense))
        hits = {str(record.id): _hit(record) for record in records}
        return [hits[point_id] for point_id in point_ids if point_id in hits]

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        """Yield every stored point. Points written meanwhile may or may not appear."""
        if matches_nothing(conditions):
            return
        matching = _filter(conditions)
        offset = None
        while True:
            with self.call() as client:
                records, offset = client.scroll(
                    self._name,
                    scroll_filter=matching,
                    limit=batch,
                    offset=offset,
                    with_payload=True,
                    with_vectors=_wanted(dense),
                )
            for record in records:
                yield _hit(record)
            if offset is None:
                return

    def count(self) -> int:
        """Return the number of stored points."""
        with self.call() as client:
            return client.count(self._name, exact=True).count

    def close(self) -> None:
        """Do nothing: the connection belongs to all collections."""


class _Calls:
    def __init__(self, collection: ServerCollection) -> None:
        self._collection = collection

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*arguments: object, **parameters: object) -> object:
            with self._collection.call() as client:
                return getattr(client, name)(*arguments, **parameters)

        return call


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


def _overwriting(point_id: str, payload: Mapping[str, Json]) -> models.UpdateOperation:
    change = models.SetPayload(payload=dict(payload), points=[point_id])
    return models.OverwritePayloadOperation(overwrite_payload=change)


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

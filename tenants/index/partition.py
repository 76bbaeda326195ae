"""Requests to a Qdrant server about the chunks of one generation of one tenant.

Threat: in a collection that tenants share, a request without the tenant's filter reads, counts or deletes the chunks of
another one. So every request about chunks is made here, and each of them is restricted to the partition:

- The payload field `tenant` names the generation, and every read, change and deletion is filtered by it.
- A point's id is derived from the partition and the chunk: equal chunks of two tenants are two points. An upsert also
  carries the filter: it cannot replace a point of another partition.
- Inverse document frequencies are counted in the partition alone, and dense vectors are compared one by one: scores do
  not depend on the other tenants of the collection.

In a dedicated collection the same requests have no filter, and a point has the id of its chunk.
"""
# ruff: noqa: ANN401 - the signatures are those of the client

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias, TypeVar
from uuid import UUID, uuid5

from qdrant_client import QdrantClient
from qdrant_client.http import models
from qdrant_client.http.exceptions import UnexpectedResponse

from tenants.core.errors import IndexDamaged
from tenants.core.json import Json
from tenants.index.layout import DENSE, SPARSE

TENANT = "tenant"
"""Payload field of a shared collection with the generation that a point belongs to."""

_CHUNK = "chunk"
"""Payload field of a shared collection with the id of the chunk."""

_NAMESPACE = UUID("5b0c7c7e-3c1a-4a55-9a0b-0f0f2f2a6d11")

Call: TypeAlias = Callable[[], AbstractContextManager[QdrantClient]]
_Found = TypeVar("_Found", models.Record, models.ScoredPoint)


class Partition:
    """The part of `QdrantClient` that collections and stock document stores use, restricted to one generation.

    :param call: gives the client for one request.
    :param collection: the collection on the server.
    :param owner: the generation, if the collection is shared; empty for a dedicated collection.
    """

    def __init__(self, call: Call, collection: str, owner: str = "") -> None:
        self._call = call
        self._namespace = uuid5(_NAMESPACE, owner)
        self._own = [models.FieldCondition(key=TENANT, match=models.MatchValue(value=owner))] if owner else []
        self.collection = collection
        self.owner = owner
        self.missing = False

    @contextmanager
    def _client(self) -> Iterator[QdrantClient]:
        with self._call() as client:
            try:
                yield client
            except (UnexpectedResponse, ValueError) as refused:
                # The collection was removed. In memory the client raises `ValueError`.
                if not client.collection_exists(self.collection):
                    self.missing = True
                    raise IndexDamaged("missing") from refused
                raise

    def get_collection(self, collection_name: str = "") -> models.CollectionInfo:  # noqa: ARG002
        """Describe the collection."""
        with self._client() as client:
            return client.get_collection(self.collection)

    def upsert(self, points: Sequence[models.PointStruct]) -> None:
        """Store points, replacing those of the same chunks."""
        stored = [
            models.PointStruct(
                id=self._point_id(str(point.id)),
                vector=point.vector,
                payload=self._stored(str(point.id), point.payload or {}),
            )
            for point in points
        ]
        with self._client() as client:
            client.upsert(self.collection, stored, wait=True, update_filter=self._matching())

    def overwrite_payloads(self, payloads: Mapping[str, Mapping[str, Json]]) -> None:
        """Replace the payloads of chunks by id; unknown ids are ignored."""
        changes = [
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(
                    payload=self._stored(chunk_id, payload), filter=self._matching(self._among([chunk_id]))
                )
            )
            for chunk_id, payload in payloads.items()
        ]
        with self._client() as client:
            client.batch_update_points(self.collection, changes, wait=True)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        """Delete chunks by id; unknown ids are ignored."""
        chosen = self._matching(self._among(chunk_ids))
        with self._client() as client:
            client.delete(self.collection, models.FilterSelector(filter=chosen), wait=True)

    def clear(self) -> None:
        """Delete all chunks of a partition; a dedicated collection is deleted instead."""
        with self._call() as client:
            if self.owner and client.collection_exists(self.collection):
                client.delete(self.collection, models.FilterSelector(filter=models.Filter(must=self._own)), wait=True)
            elif not self.owner:
                client.delete_collection(self.collection)

    def fetch(self, chunk_ids: Sequence[str], with_vectors: Any = False) -> list[models.Record]:
        """Return the stored chunks among `chunk_ids`, in no particular order."""
        return self.scroll("", self._among(chunk_ids), limit=len(chunk_ids), with_vectors=with_vectors)[0]

    def count(self, collection_name: str = "", count_filter: models.Filter | None = None) -> models.CountResult:  # noqa: ARG002
        """Count the points that match."""
        with self._client() as client:
            return client.count(self.collection, self._matching(count_filter), exact=True)

    def scroll(
        self,
        collection_name: str = "",  # noqa: ARG002
        scroll_filter: models.Filter | None = None,
        limit: int = 256,
        offset: Any = None,
        with_payload: Any = True,
        with_vectors: Any = False,
    ) -> tuple[list[models.Record], Any]:
        """Return a page of the points that match, and where the next one begins."""
        with self._client() as client:
            records, following = client.scroll(
                self.collection,
                scroll_filter=self._matching(scroll_filter),
                limit=limit,
                offset=offset,
                with_payload=self._payload(with_payload),
                with_vectors=with_vectors,
            )
        return self._restored(records, with_payload), following

    def query_batch_points(self, requests: Sequence[models.QueryRequest]) -> list[models.QueryResponse]:
        """Return the best points for each vector, all in one request."""
        narrowed = [
            request.model_copy(
                update={
                    "filter": self._matching(request.filter),
                    "params": self._params(request.using),
                    "with_payload": self._payload(request.with_payload),
                }
            )
            for request in requests
        ]
        with self._client() as client:
            answers = client.query_batch_points(self.collection, narrowed)
        return [
            models.QueryResponse(points=self._restored(answer.points, request.with_payload))
            for answer, request in zip(answers, requests, strict=True)
        ]

    def query_points(self, collection_name: str, **parameters: Any) -> models.QueryResponse:  # noqa: ARG002
        """Return the best points for a vector, or for the fusion of several."""
        with self._client() as client:
            answer = client.query_points(self.collection, **self._narrowed(parameters))
        return models.QueryResponse(points=self._restored(answer.points))

    def query_points_groups(self, collection_name: str, **parameters: Any) -> models.GroupsResult:  # noqa: ARG002
        """Return the best points of each of the best groups."""
        with self._client() as client:
            answer = client.query_points_groups(self.collection, **self._narrowed(parameters))
        return models.GroupsResult(
            groups=[models.PointGroup(id=group.id, hits=self._restored(group.hits)) for group in answer.groups]
        )

    def _narrowed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        prefetches = [
            part.model_copy(update={"filter": self._matching(part.filter), "params": self._params(part.using)})
            for part in parameters.get("prefetch") or []
        ]
        return {
            **parameters,
            "prefetch": prefetches or None,
            "query_filter": self._matching(parameters.get("query_filter")),
            "search_params": self._params(parameters.get("using")),
        }

    def _matching(self, condition: Any = None) -> models.Filter | None:
        if not self._own:
            return models.Filter(must=[condition]) if isinstance(condition, models.HasIdCondition) else condition
        return models.Filter(must=[*self._own, condition] if condition else self._own)

    def _among(self, chunk_ids: Sequence[str]) -> Any:
        return models.HasIdCondition(has_id=[self._point_id(chunk_id) for chunk_id in chunk_ids])

    def _params(self, vector: str | None) -> models.SearchParams | None:
        corpus = self._matching() if self._own else None
        if corpus is not None and vector == SPARSE:
            return models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus))
        return models.SearchParams(exact=True) if corpus is not None and vector == DENSE else None

    def _point_id(self, chunk_id: str) -> str:
        return str(uuid5(self._namespace, chunk_id)) if self._own else chunk_id

    def _stored(self, chunk_id: str, payload: Mapping[str, Json]) -> dict[str, Json]:
        return {**payload, TENANT: self.owner, _CHUNK: chunk_id} if self._own else dict(payload)

    def _payload(self, wanted: Any) -> Any:
        """Return the payload to ask for: without one, the id of a chunk would be unknown."""
        return [_CHUNK] if self._own and not wanted else wanted

    def _restored(self, found: Sequence[_Found], with_payload: Any = True) -> list[_Found]:
        """Return points with the ids and payloads of their chunks."""
        if not self._own:
            return list(found)
        return [
            point.model_copy(
                update={
                    "id": (point.payload or {})[_CHUNK],
                    "payload": {name: value for name, value in (point.payload or {}).items() if name not in _FIELDS}
                    if with_payload
                    else None,
                }
            )
            for point in found
        ]


_FIELDS = {TENANT, _CHUNK}

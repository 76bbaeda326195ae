"""A fake of Qdrant's server: the part of its REST protocol that we use, backed by the client's local mode.

For tests of several processes, and of tenants in one collection, where there is no real server
(`OPORA_TEST_QDRANT_URL`). It shows nothing of how a real one performs or fails. It keeps the requests that it got.
"""

import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from json import loads
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import uvicorn
from pydantic import BaseModel
from qdrant_client import QdrantClient
from qdrant_client.http import models
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tenants.index.partition import TENANT

_PATIENCE_SECONDS = 30.0
_ALL = 1_000_000


class Recorded(NamedTuple):
    """A request about a collection: the method, the path behind its name, and the body."""

    method: str
    path: str
    collection: str
    body: Any


class FakeQdrant:
    """Collections in memory, one request at a time.

    The local mode looks at every point of a collection, a server only at those of the tenant that a filter names. So
    searches with such a filter run on a copy with these points alone.

    :ivar refusal: status and error that whatever would change points gets; None: it is done.
    :ivar requests: the requests about collections, in order.
    """

    def __init__(self) -> None:
        self.refusal: tuple[int, str] | None = None
        self.requests: list[Recorded] = []
        self._client = QdrantClient(":memory:")
        self._lock = Lock()
        self._indexes: dict[str, dict[str, str]] = {}
        self._parts: dict[str, dict[str, str]] = {}
        """Names of the copies by collection and tenant, until one of their points changes."""
        item = "/collections/{name}"
        self.application = Starlette(
            routes=[
                Route("/aliases", self._calling(self.list_aliases)),
                Route("/collections/aliases", self._calling(self.change_aliases), methods=["POST"]),
                Route(f"{item}/exists", self._calling(self.exists)),
                Route(item, self._calling(self.show)),
                Route(item, self._calling(self.create), methods=["PUT"]),
                Route(item, self._calling(self.delete), methods=["DELETE"]),
                Route(f"{item}/index", self._calling(self.index), methods=["PUT"]),
                Route(f"{item}/points", self._calling(self.upsert, writes=True), methods=["PUT"]),
                Route(f"{item}/points/delete", self._calling(self.delete_points, writes=True), methods=["POST"]),
                Route(f"{item}/points/batch", self._calling(self.update, writes=True), methods=["POST"]),
                Route(f"{item}/points/query", self._calling(self.query), methods=["POST"]),
                Route(f"{item}/points/query/batch", self._calling(self.query_batch), methods=["POST"]),
                Route(f"{item}/points/query/groups", self._calling(self.query_groups), methods=["POST"]),
                Route(f"{item}/points/scroll", self._calling(self.scroll), methods=["POST"]),
                Route(f"{item}/points/count", self._calling(self.count), methods=["POST"]),
            ]
        )

    def list_aliases(self, _name: str, _body: bytes) -> object:
        return self._client.get_aliases()

    def change_aliases(self, _name: str, body: bytes) -> object:
        actions = models.ChangeAliasesOperation.model_validate_json(body).actions
        return self._client.update_collection_aliases(actions)

    def exists(self, name: str, _body: bytes) -> object:
        return {"exists": self._client.collection_exists(name)}

    def show(self, name: str, _body: bytes) -> object:
        shown = self._client.get_collection(name).model_dump(mode="json", exclude_none=True)
        indexes = self._indexes.get(name, {})
        return {**shown, "payload_schema": {path: {"data_type": kind, "points": 0} for path, kind in indexes.items()}}

    def create(self, name: str, body: bytes) -> object:
        if self._client.collection_exists(name):
            raise FileExistsError
        asked = models.CreateCollection.model_validate_json(body)
        return self._client.create_collection(
            name,
            vectors_config=asked.vectors,
            sparse_vectors_config=asked.sparse_vectors,
            metadata=asked.metadata,
        )

    def delete(self, name: str, _body: bytes) -> object:
        self._indexes.pop(name, None)
        self._drop_parts(name)
        return self._client.delete_collection(name)

    def index(self, name: str, body: bytes) -> object:
        asked = models.CreateFieldIndex.model_validate_json(body)
        kind = asked.field_schema
        self._indexes.setdefault(name, {})[asked.field_name] = (
            kind.value if isinstance(kind, models.PayloadSchemaType) else "keyword"
        )
        return _DONE

    def upsert(self, name: str, body: bytes) -> object:
        asked = models.PointsList.model_validate_json(body)
        self._drop_parts(name, {str((point.payload or {}).get(TENANT)) for point in asked.points})
        return self._client.upsert(name, asked.points, update_filter=asked.update_filter)

    def delete_points(self, name: str, body: bytes) -> object:
        selected = models.FilterSelector.model_validate_json(body)
        self._drop_parts(name, _tenants(selected.filter))
        return self._client.delete(name, selected)

    def update(self, name: str, body: bytes) -> object:
        self._drop_parts(name)
        return self._client.batch_update_points(name, models.UpdateOperations.model_validate_json(body).operations)

    def query(self, name: str, body: bytes) -> object:
        asked = _exact(models.QueryRequest.model_validate_json(body))
        return self._client.query_batch_points(self._part(name, *_filters(asked)), [asked])[0]

    def query_batch(self, name: str, body: bytes) -> object:
        asked = models.QueryRequestBatch.model_validate_json(body)
        searches = [_exact(search) for search in asked.searches]
        part = self._part(name, *(one for search in searches for one in _filters(search)))
        return self._client.query_batch_points(part, searches)

    def query_groups(self, name: str, body: bytes) -> object:
        asked = _exact(models.QueryGroupsRequest.model_validate_json(body))
        return self._client.query_points_groups(
            name,
            group_by=asked.group_by,
            group_size=asked.group_size or 3,
            query=asked.query,
            using=asked.using,
            prefetch=asked.prefetch,
            query_filter=asked.filter,
            search_params=asked.params,
            limit=asked.limit or 10,
            with_payload=True,
            with_vectors=asked.with_vector or False,
            score_threshold=asked.score_threshold,
        )

    def scroll(self, name: str, body: bytes) -> object:
        asked = models.ScrollRequest.model_validate_json(body)
        records, following = self._client.scroll(
            name,
            scroll_filter=asked.filter,
            limit=asked.limit or 10,
            offset=asked.offset,
            with_payload=asked.with_payload or False,
            with_vectors=asked.with_vector or False,
        )
        return {"points": _plain(records), "next_page_offset": following}

    def count(self, name: str, body: bytes) -> object:
        asked = models.CountRequest.model_validate_json(body)
        return self._client.count(self._part(name, asked.filter), asked.filter, exact=True)

    def _part(self, name: str, *filters: models.Filter | None) -> str:
        """Return the collection with the points of the tenant that each filter names, else the whole one."""
        tenants = {tenant for one in filters for tenant in _tenants(one) or {""}}
        if len(tenants) != 1 or not (tenant := tenants.pop()):
            return name
        name = next((one.collection_name for one in self._client.get_aliases().aliases if one.alias_name == name), name)
        parts = self._parts.setdefault(name, {})
        if tenant not in parts:
            part = f"{name} of {tenant}"
            shown = self._client.get_collection(name).config.params
            self._client.create_collection(
                part, vectors_config=shown.vectors, sparse_vectors_config=shown.sparse_vectors
            )
            own = models.Filter(must=[models.FieldCondition(key=TENANT, match=models.MatchValue(value=tenant))])
            records, _ = self._client.scroll(name, own, limit=_ALL, with_payload=True, with_vectors=True)
            points = [models.PointStruct(id=one.id, vector=one.vector or {}, payload=one.payload) for one in records]
            if points:
                self._client.upsert(part, points)
            parts[tenant] = part
        return parts[tenant]

    def _drop_parts(self, name: str, tenants: Collection[str] = ()) -> None:
        """Drop the copies of tenants whose points change; of all, if none is named."""
        parts = self._parts.get(name, {})
        for tenant in tenants or list(parts):
            if tenant in parts:
                self._client.delete_collection(parts.pop(tenant))

    def _calling(self, work: Callable[[str, bytes], object], *, writes: bool = False) -> Callable[[Request], object]:
        async def answer(request: Request) -> Response:
            body = await request.body()
            if (name := request.path_params.get("name")) is not None:
                path = request.url.path.removeprefix(f"/collections/{name}")
                self.requests.append(Recorded(request.method, path, name, loads(body or b"null")))
            if writes and self.refusal is not None:
                status, error = self.refusal
                return JSONResponse({"status": {"error": error}, "time": 0.0}, status)
            try:
                with self._lock:
                    result = work(request.path_params.get("name", ""), body)
            except FileExistsError:
                return JSONResponse({"status": {"error": "exists"}, "time": 0.0}, 409)
            except ValueError as missing:
                return JSONResponse({"status": {"error": str(missing)}, "time": 0.0}, 404)
            return JSONResponse({"result": _plain(result), "status": "ok", "time": 0.0})

        return answer


_DONE = {"operation_id": 0, "status": "completed"}


_Query = TypeVar("_Query", models.QueryRequest, models.QueryGroupsRequest)


def _exact(asked: _Query) -> _Query:
    """Drop `exact`: the local mode knows no other search, and warns of the parameter."""
    queries: list[Any] = [asked, *_prefetched(asked)]
    for query in queries:
        if query.params is not None:
            query.params.exact = None
    return asked


def _filters(asked: models.QueryRequest) -> list[models.Filter | None]:
    """Return the filters of all searches of a query."""
    return [one.filter for one in _prefetched(asked)] or [asked.filter]


def _prefetched(asked: models.QueryRequest | models.QueryGroupsRequest) -> list[models.Prefetch]:
    """Return the searches whose results a query joins; empty if it searches itself."""
    return asked.prefetch if isinstance(asked.prefetch, list) else [asked.prefetch] if asked.prefetch else []


def _tenants(condition: models.Filter | None) -> set[str]:
    """Return the tenant that a filter demands; empty if none."""
    must = condition.must if condition is not None else None
    return {
        str(one.match.value)
        for one in (must if isinstance(must, list) else [must])
        if isinstance(one, models.FieldCondition) and one.key == TENANT and isinstance(one.match, models.MatchValue)
    }


def _plain(result: object) -> object:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json", exclude_none=True)
    if isinstance(result, list):
        return [_plain(one) for one in result]
    return _DONE if result is None else result


@contextmanager
def running(fake: FakeQdrant | None = None) -> Iterator[str]:
    """Run a fake until the block ends; yield its URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config((fake or FakeQdrant()).application, log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listening],), name="fake-qdrant")
        thread.start()
        try:
            deadline = monotonic() + _PATIENCE_SECONDS
            while not server.started:
                assert monotonic() < deadline
                Event().wait(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

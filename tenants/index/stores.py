"""Haystack document stores over the index of the tenant in context, so that stock retrievers and writers work on it.

`TenantQdrantDocumentStore` reads a Qdrant server, `EdgeDocumentStore` the embedded engine. Both are a
`QdrantDocumentStore`, because the stock retrievers check for that class, and differ from it where its own behaviour
would be a fault here (qdrant-haystack 13.1):

- The tenant comes from the context and the collection from the tenant's placement; neither can be named.
- Reading never creates a collection. A lost index raises `IndexDamaged`, a tenant without documents has none.
- `in []` matches nothing; the stock filter matches everything. Native Qdrant filters are refused.
- Each half of a hybrid search brings `candidates` hits; the stock one brings ten.
- An empty embedding finds nothing, and a hybrid search is then lexical.
- Every document found with an embedding carries its cosine in `meta["scores"]`: reciprocal ranks say nothing about
  relevance. Its status is `superseded` if an edge marks it so.
- Writing checks every vector, reaches the disk before it returns, and keeps the tenant's records, so that the next
  ingest run does not remove the chunks as orphans.
- A retriever from YAML deserialises its store as a `QdrantDocumentStore`, whatever type is given; see `_from_dict`.

```yaml
retriever:
  type: haystack_integrations.components.retrievers.qdrant.retriever.QdrantHybridRetriever
  init_parameters:
    document_store: {type: tenants.index.stores.EdgeDocumentStore, init_parameters: {}}
```
"""

# ruff: noqa: ANN401 - the signatures are those of the stock store

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite, sqrt
from typing import Any, ClassVar
from uuid import UUID

from haystack import Document, default_from_dict, default_to_dict
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from haystack_integrations.document_stores.qdrant.converters import convert_id
from haystack_integrations.document_stores.qdrant.filters import convert_filters_to_qdrant
from qdrant_client.http import models

from tenants.core.errors import Busy, InternalFault
from tenants.core.json import Json
from tenants.core.points import Point, Vector
from tenants.index.access import open_collection
from tenants.index.layout import DENSE, SPARSE
from tenants.index.protocol import Collection, EmptyCollection
from tenants.index.qdrant_edge import EdgeCollection
from tenants.index.qdrant_edge_client import EdgeClient
from tenants.index.qdrant_server import ServerCollection
from tenants.index.remote import RemoteCollection
from tenants.knowledge import documents as records
from tenants.knowledge import lexicon, relations, writing
from tenants.knowledge.documents import DocumentRecord

CANDIDATES = 40
"""Hits of each vector in a hybrid search, as many as our own retriever takes."""

_NOTHING = models.Filter(must=[models.HasIdCondition(has_id=[])])
_PROPERTIES: Mapping[str, Json] = {
    "title": "",
    "heading": "",
    "source": "",
    "url": None,
    "lang": "ru",
    "updated_at": "",
    "trust": "raw",
    "status": "active",
    "priority": 0,
    "tags": [],
    "project_key": "",
    "evidence_tier": "",
    "source_type": "",
    "chunk_index": 0,
}
_GIVEN = ("title", "status", "trust", "priority", "tags", "project_key", "evidence_tier", "source_type")
"""Properties that an operator may override."""

_TRANSIENT = frozenset({"scores", "relevance"})
"""Metadata of a search result that is not stored again."""


def _threaded(name: str) -> Callable[..., Any]:
    """Return the asynchronous form of a method. A thread takes the tenant's context with it."""

    async def call(self: object, *args: Any, **parameters: Any) -> Any:
        return await asyncio.to_thread(getattr(self, name), *args, **parameters)

    return call


class TenantQdrantDocumentStore(QdrantDocumentStore):
    """The index of the tenant in context on a Qdrant server.

    :param return_embedding: bring the embeddings of documents by default.
    :param candidates: hits of each vector in a hybrid search.
    """

    collection_type: ClassVar[type] = ServerCollection

    def __init__(self, return_embedding: bool = False, candidates: int = CANDIDATES) -> None:
        super().__init__(
            use_sparse_embeddings=True, sparse_idf=True, return_embedding=return_embedding, progress_bar=False
        )
        self.candidates = candidates

    def to_dict(self) -> dict[str, Any]:
        """Serialise without location and key: both belong to the installation."""
        return default_to_dict(self, return_embedding=self.return_embedding, candidates=self.candidates)

    @property
    def index(self) -> str:
        """Return the physical collection of the tenant in context, for messages and requests."""
        return getattr(self._collection(), "name", "")

    @index.setter
    def index(self, _: str) -> None:
        """Ignore the value: a store is not bound to a collection."""

    @property
    def _client(self) -> Any:
        """Return a client of the tenant's collection, opened for each call because the tenant may differ."""
        collection = self._collection()
        return _NoPoints() if isinstance(collection, EmptyCollection) else self._client_of(collection)

    @_client.setter
    def _client(self, _: object) -> None:
        """Ignore the value: clients belong to `tenants.index`."""

    def _client_of(self, collection: Any) -> Any:
        return collection.client

    def _collection(self, *, dimensions: int | None = None) -> Collection:
        """Open the tenant's collection. With `dimensions` create it if it is missing."""
        collection = open_collection(create=dimensions is not None, dimensions=dimensions or 0)
        if isinstance(collection, RemoteCollection):
            # The stock methods read the engine itself, which another process has.
            raise Busy("data_in_use")
        if not isinstance(collection, self.collection_type | EmptyCollection):
            raise InternalFault("index_engine_mismatch")
        return collection

    def _initialize_client(self) -> None:
        """Do nothing: the stock method would create a missing collection."""

    def close(self) -> None:
        """Do nothing: connections belong to `tenants.index`."""

    async def close_async(self) -> None:
        """Do nothing: connections belong to `tenants.index`."""

    # Writing.

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.FAIL) -> int:
        """Store documents with the embeddings that they bring, and record them.

        `doc_id` in the metadata (or `source_id`) names the article that a document is a chunk of, `chunk_index` its
        place there. The next ingest run recounts the lexicon.
        """
        if not documents:
            return 0
        dimensions = next((len(document.embedding) for document in documents if document.embedding), 0)
        with writing.alone():
            collection = self._collection(dimensions=dimensions)
            chosen = list({_point_id(document.id): document for document in documents}.items())
            if policy in {DuplicatePolicy.FAIL, DuplicatePolicy.SKIP, DuplicatePolicy.NONE}:
                present = {hit.id for hit in collection.fetch([point_id for point_id, _ in chosen])}
                if present and policy is not DuplicatePolicy.SKIP:
                    raise DuplicateDocumentError(f"{len(present)} of the documents are stored already")
                chosen = [(point_id, document) for point_id, document in chosen if point_id not in present]
            points = [_point(point_id, document) for point_id, document in chosen]
            lexicon.begin()
            collection.upsert(points)
            _record(points)
        return len(points)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents and their records; unknown ids are ignored."""
        with writing.alone():
            collection = self._collection()
            hits = collection.fetch([_point_id(document_id) for document_id in document_ids])
            if hits:
                lexicon.begin()
                _forget({hit.id for hit in hits}, {str(_meta(hit.payload)["doc_id"]) for hit in hits})
                collection.delete([hit.id for hit in hits])

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Remove the documents that match. Returns how many."""
        found = [document.id for document in self.filter_documents(filters)] if filters else []
        self.delete_documents(found)
        return len(found)

    def delete_all_documents(self, recreate_index: bool = False) -> None:  # noqa: ARG002
        """Remove all documents. The collection stays, with the settings that its chunks are encoded by."""
        self.delete_documents([hit.id for hit in self._collection().scan()])

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Raise an error: chunks and records must agree, so only operators change documents."""
        raise NotImplementedError("metadata is changed by `opora document set`")

    # Reading.

    def count_documents(self) -> int:
        """Count the documents."""
        return self._collection().count()

    def filter_documents(self, filters: Any = None) -> list[Document]:
        """Return the documents that match."""
        return super().filter_documents(native_filter(filters))

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Count the documents that match."""
        return super().count_documents_by_filter(native_filter(filters))  # type: ignore[arg-type]

    def get_documents_by_id(self, ids: list[str]) -> list[Document]:
        """Return the documents with these ids, in their order."""
        hits = self._collection().fetch([_point_id(document_id) for document_id in ids], dense=True)
        return [Document.from_dict({**_plain(hit.payload), "id": hit.id, "embedding": hit.dense}) for hit in hits]

    def _query_by_embedding(  # type: ignore[override]
        self, query_embedding: list[float], filters: Any = None, scale_score: bool = False, **parameters: Any
    ) -> list[Document]:
        if not (query_embedding and self._collection().dimensions):
            return []
        found = super()._query_by_embedding(query_embedding, native_filter(filters), scale_score=False, **parameters)
        documents = [_scored(document, cosine=document.score) for document in found]
        return (
            [replace(document, score=_scaled(document.score)) for document in documents] if scale_score else documents
        )

    def _query_by_sparse(  # type: ignore[override]
        self, query_sparse_embedding: SparseEmbedding, filters: Any = None, **parameters: Any
    ) -> list[Document]:
        found = super()._query_by_sparse(query_sparse_embedding, native_filter(filters), **parameters)
        return [_scored(document) for document in found]

    def _query_hybrid(
        self,
        query_embedding: list[float],
        query_sparse_embedding: SparseEmbedding,
        filters: Any = None,
        top_k: int = 10,
        return_embedding: bool = False,
        score_threshold: float | None = None,
        group_by: str | None = None,
        group_size: int | None = None,
        rrf_k: int | None = None,
        rrf_weights: list[float] | None = None,
    ) -> list[Document]:
        matching = native_filter(filters)
        sparse = models.SparseVector(indices=query_sparse_embedding.indices, values=query_sparse_embedding.values)
        per_vector = max(self.candidates, top_k)
        vectors: list[tuple[str, Any]] = [(SPARSE, sparse)]
        if query_embedding and self._collection().dimensions:
            vectors.append((DENSE, query_embedding))
        request: dict[str, Any] = {
            "collection_name": self.index,
            "prefetch": [
                models.Prefetch(query=query, using=name, filter=matching, limit=per_vector) for name, query in vectors
            ],
            "query": models.RrfQuery(
                rrf=models.Rrf(k=rrf_k, weights=rrf_weights[: len(vectors)] if rrf_weights else None)
            ),
            "limit": top_k,
            "score_threshold": score_threshold,
            "with_payload": True,
            "with_vectors": [DENSE],
        }
        if group_by:
            groups = self._client.query_points_groups(**request, group_by=group_by, group_size=group_size or 3).groups
            found = self._process_group_results(groups)
        else:
            found = self._process_query_point_results(self._client.query_points(**request).points)
        documents = [_scored(document, cosine=_cosine(query_embedding, document.embedding)) for document in found]
        return documents if return_embedding else [replace(document, embedding=None) for document in documents]


for _name in dir(TenantQdrantDocumentStore):
    if _name.endswith("_async") and _name not in vars(TenantQdrantDocumentStore):
        setattr(TenantQdrantDocumentStore, _name, _threaded(_name.removesuffix("_async")))


class EdgeDocumentStore(TenantQdrantDocumentStore):
    """The index of the tenant in context in the embedded engine.

    :param return_embedding: bring the embeddings of documents by default.
    :param candidates: hits of each vector in a hybrid search.
    """

    collection_type = EdgeCollection

    def _client_of(self, collection: EdgeCollection) -> EdgeClient:
        return EdgeClient(collection)


def native_filter(filters: Any) -> models.Filter | None:
    """Convert Haystack filters to Qdrant's, so that `in []` matches nothing and `not in []` everything.

    :raises FilterError: malformed, or a native filter of Qdrant, which could name anything in the collection.
    """
    if not filters:
        return None
    if not isinstance(filters, Mapping):
        raise FilterError("filters are Haystack filters: a mapping with operator, field and value")
    return _nested(filters)


def _nested(term: Mapping[str, Any]) -> models.Filter:
    operator, parts = term.get("operator"), term.get("conditions")
    if operator in {"AND", "OR", "NOT"} and parts:
        conditions: list[Any] = [_nested(part) for part in parts]
        if operator == "AND":
            return models.Filter(must=conditions)
        if operator == "OR":
            return models.Filter(should=conditions)
        # Haystack's NOT negates the conjunction; the stock converter negates each condition.
        return models.Filter(must_not=[models.Filter(must=conditions)])
    if term.get("value") == [] and operator == "in":
        return _NOTHING
    if term.get("value") == [] and operator == "not in":
        return models.Filter()
    converted = convert_filters_to_qdrant(dict(term))
    if converted is None:
        raise FilterError("an empty filter among others")
    return converted


class _NoPoints:
    """The client of a tenant without a collection."""

    def count(self, **_: object) -> models.CountResult:
        return models.CountResult(count=0)

    def scroll(self, **_: object) -> tuple[list[models.Record], None]:
        return [], None

    def query_points(self, **_: object) -> models.QueryResponse:
        return models.QueryResponse(points=[])

    def query_points_groups(self, **_: object) -> models.GroupsResult:
        return models.GroupsResult(groups=[])


def _point_id(document_id: str) -> str:
    """Return the id of a document's point: itself where it is a UUID, as those of our chunks are."""
    try:
        return str(UUID(document_id))
    except ValueError:
        return str(UUID(convert_id(document_id)))


def _point(point_id: str, document: Document) -> Point:
    vectors: dict[str, Vector] = {}
    if document.embedding:
        vectors[DENSE] = document.embedding
    if document.sparse_embedding:
        vectors[SPARSE] = dict(zip(document.sparse_embedding.indices, document.sparse_embedding.values, strict=True))
    given = {name: value for name, value in document.meta.items() if name not in _TRANSIENT}
    content = document.content or ""
    meta: dict[str, Json] = {
        **_PROPERTIES,
        "doc_id": str(given.get("source_id") or document.id),
        "sentences": [[0, len(content)]] if content else [],
        **given,
        "chunk_id": point_id,
    }
    return Point(point_id, vectors, {"id": point_id, "content": content, "meta": meta})


def _record(points: Sequence[Point]) -> None:
    """Add the chunks to the records of their documents, in the order of `chunk_index`."""
    metas = {point.id: _meta(point.payload) for point in points}
    known = records.find(list({str(meta["doc_id"]) for meta in metas.values()}))
    changed: dict[str, DocumentRecord] = {}
    for chunk_id, meta in sorted(metas.items(), key=lambda item: int(str(item[1]["chunk_index"]))):
        doc_id = str(meta["doc_id"])
        record = changed.get(doc_id) or known.get(doc_id) or _new_record(doc_id, meta)
        chunk_ids = (*(known_id for known_id in record.chunk_ids if known_id != chunk_id), chunk_id)
        # No hash: the next ingestion of this document writes it again.
        changed[doc_id] = replace(record, chunk_ids=chunk_ids, content_hash="")
    records.put(*changed.values())


def _new_record(doc_id: str, meta: Mapping[str, Json]) -> DocumentRecord:
    names = {field.name for field in fields(DocumentRecord)} & _PROPERTIES.keys()
    values: dict[str, Any] = {name: meta[name] for name in names}
    values["tags"] = tuple(map(str, values["tags"]))
    given = {name: meta[name] for name in _GIVEN}
    return DocumentRecord(doc_id, content_hash="", chunk_ids=(), given=given, **values)


def _forget(chunk_ids: set[str], doc_ids: Iterable[str]) -> None:
    """Remove chunks from the records of their documents; delete documents without chunks."""
    left, gone = [], []
    for record in records.find(list(doc_ids)).values():
        kept = tuple(chunk_id for chunk_id in record.chunk_ids if chunk_id not in chunk_ids)
        if kept:
            left.append(replace(record, chunk_ids=kept, content_hash=""))
        else:
            gone.append(record.doc_id)
    records.put(*left)
    records.remove(*gone)


def _meta(payload: Mapping[str, Json]) -> Mapping[str, Json]:
    meta = payload["meta"]
    return meta if isinstance(meta, Mapping) else {}


def _plain(payload: Mapping[str, Json]) -> dict[str, Any]:
    return {"content": payload.get("content"), "meta": dict(_meta(payload))}


def _scored(document: Document, cosine: float | None = None) -> Document:
    scores = {"search": document.score or 0.0}
    if cosine is not None:
        scores["cosine"] = cosine
    meta = {**document.meta, "scores": scores}
    if meta.get("status") == "active" and meta.get("doc_id") in relations.current().successors:
        meta["status"] = "superseded"
    return replace(document, meta=meta)


def _scaled(score: float | None) -> float | None:
    return None if score is None else (score + 1) / 2


def _cosine(query: Sequence[float], stored: Sequence[float] | None) -> float | None:
    """Return the cosine of a query and a stored vector, which has length 1; None without a stored one."""
    length = sqrt(sum(number * number for number in query))
    if not stored or not length or not isfinite(length):
        return None
    return sum(one * other for one, other in zip(query, stored, strict=True)) / length


def _from_dict(cls: type[QdrantDocumentStore], data: dict[str, Any]) -> QdrantDocumentStore:
    """Deserialise a store by its own type.

    The retrievers of qdrant-haystack 13.1 call `QdrantDocumentStore.from_dict` for whatever store they are given, and
    Haystack then refuses any other type. Only the two classes of this module are recognised.
    """
    recognised = {
        f"{store.__module__}.{store.__name__}": store for store in (TenantQdrantDocumentStore, EdgeDocumentStore)
    }
    return default_from_dict(recognised.get(str(data.get("type")), cls), data)


QdrantDocumentStore.from_dict = classmethod(_from_dict)  # type: ignore[method-assign, assignment]

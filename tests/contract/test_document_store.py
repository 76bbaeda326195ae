"""Stock Haystack tools read our collections: payload layout and vectors are those of `QdrantDocumentStore`."""

from collections.abc import Iterator
from uuid import NAMESPACE_OID, uuid5

import pytest
import qdrant_client
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore

from settings import Settings, get_settings
from tenants import registry
from tenants.context import Tenant, acting_as
from tenants.index import Point, access, open_collection
from tenants.registry import Registry

POINT = Point(
    str(uuid5(NAMESPACE_OID, "1")),
    {"text-sparse": {7: 1.0, 8: 0.5}},
    {
        "id": str(uuid5(NAMESPACE_OID, "1")),
        "content": "E20: вода не сливается.",
        "meta": {"doc_id": "errors", "title": "Ошибки", "sentences": [[0, 23]], "tags": ["коды"], "priority": 5},
    },
)


@pytest.fixture
def store(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[QdrantDocumentStore]:
    monkeypatch.setenv("OPORA_QDRANT_URL", ":memory:")
    get_settings.cache_clear()
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna")):
        open_collection(create=True).upsert([POINT])
        ours = access._ENGINES[":memory:"]._client  # type: ignore[attr-defined]
        monkeypatch.setattr(qdrant_client, "QdrantClient", lambda **_: ours)
        yield QdrantDocumentStore(
            location=":memory:",
            index=registry.current().placement.collection,
            embedding_dim=1,
            use_sparse_embeddings=True,
            sparse_idf=True,
        )


def test_documents_are_read_whole(store: QdrantDocumentStore) -> None:
    (document,) = store.filter_documents()
    assert document.id == POINT.id
    assert document.content == POINT.payload["content"]
    assert document.meta == POINT.payload["meta"]
    assert store.count_documents() == 1


def test_documents_are_found_by_their_stems_and_filtered(store: QdrantDocumentStore) -> None:
    query = SparseEmbedding(indices=[7], values=[1.0])
    filters = {"field": "meta.doc_id", "operator": "==", "value": "errors"}
    (document,) = store._query_by_sparse(query, filters=filters, top_k=5, scale_score=False, return_embedding=False)
    assert document.meta["title"] == "Ошибки"
    assert document.score is not None
    assert document.score > 0

"""Stock Haystack retrievers and the stock writer work on the tenant's index, on every engine."""

from collections.abc import Mapping
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest
import yaml
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.qdrant import (
    QdrantEmbeddingRetriever,
    QdrantHybridRetriever,
    QdrantSparseEmbeddingRetriever,
)
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from qdrant_client.http import models

from components.embed.sparse import SparseDocumentEmbedder, SparseTextEmbedder
from components.ingest.document import SourceDocument
from components.ingest.reconcile import compare, recount
from components.language.encoder_settings import DenseSettings, EncoderSettings
from components.passages import from_payload
from components.turn import Turn
from pipelines.ask.engine import YAML, AskEngine
from pipelines.definition import ALLOWED_MODULES
from pipelines.ingest.usecase import Ingest
from pipelines.lint import lint_file
from tenants import index
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import IndexDamaged, InternalFault
from tenants.index import SPARSE, open_collection
from tenants.index.stores import EdgeDocumentStore, TenantQdrantDocumentStore
from tenants.knowledge import documents as records
from tests.pages import profile

Store = TenantQdrantDocumentStore


def named(number: int) -> str:
    return str(uuid5(NAMESPACE_OID, str(number)))


def document(number: int, dense: tuple[float, float], stems: Mapping[int, float], **meta: object) -> Document:
    return Document(
        id=named(number),
        content=f"Текст {number}",
        meta={"doc_id": f"d{number}", **meta},
        embedding=list(dense),
        sparse_embedding=SparseEmbedding(indices=[*stems], values=[*stems.values()]),
    )


DOCUMENTS = [
    document(1, (1.0, 0.0), {7: 1.0}, tags=["a"], priority=1, updated_at="2024-01-01"),
    document(2, (0.0, 2.0), {7: 2.0, 8: 1.0}, tags=["a", "b"], priority=2, updated_at="2024-02-01"),
    document(3, (1.0, 1.0), {9: 1.0}, tags=[], priority=3, updated_at="2024-03-01"),
]
QUERY = SparseEmbedding(indices=[7], values=[1.0])


@pytest.fixture
def store(tenant: Tenant, backend: str) -> Store:
    return EdgeDocumentStore() if backend == "edge" else TenantQdrantDocumentStore()


@pytest.fixture
def filled(store: Store) -> Store:
    assert DocumentWriter(store).run(DOCUMENTS) == {"documents_written": 3}
    return store


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


class TestRetrievers:
    def test_dense(self, filled: Store) -> None:
        found = QdrantEmbeddingRetriever(filled, top_k=2).run([2.0, 0.0])["documents"]
        assert ids(found) == [named(1), named(3)]
        assert [one.score for one in found] == pytest.approx([1.0, 0.5**0.5])
        assert [one.meta["scores"]["cosine"] for one in found] == pytest.approx([1.0, 0.5**0.5])
        assert found[0].embedding is None
        scaled = QdrantEmbeddingRetriever(filled, scale_score=True, return_embedding=True).run([2.0, 0.0])["documents"]
        assert [one.score for one in scaled] == pytest.approx([1.0, (1 + 0.5**0.5) / 2, 0.5])
        assert scaled[1].embedding == pytest.approx([0.5**0.5, 0.5**0.5])

    def test_sparse(self, filled: Store) -> None:
        found = QdrantSparseEmbeddingRetriever(filled).run(QUERY)["documents"]
        assert ids(found) == [named(2), named(1)]
        [by_collection, _] = open_collection().search({SPARSE: {7: 1.0}}, limit=5)[SPARSE]
        assert found[0].score == pytest.approx(by_collection.score)

    def test_hybrid_has_cosines(self, filled: Store) -> None:
        found = QdrantHybridRetriever(filled).run([1.0, 0.0], QUERY)["documents"]
        assert set(ids(found)) == {named(1), named(2), named(3)}
        assert {one.id: one.meta["scores"]["cosine"] for one in found} == pytest.approx(
            {named(1): 1.0, named(2): 0.0, named(3): 0.5**0.5}, abs=1e-6
        )
        assert all(one.embedding is None for one in found)
        [best] = QdrantHybridRetriever(filled, top_k=1, return_embedding=True).run([1.0, 0.0], QUERY)["documents"]
        assert best.embedding is not None

    def test_hybrid_sees_more_candidates_than_it_returns(self, store: Store) -> None:
        written = [document(number, (1.0, number / 50), {7: 1.0 + number / 50}) for number in range(30)]
        DocumentWriter(store).run(written)
        found = QdrantHybridRetriever(store, top_k=30).run([1.0, 0.0], QUERY)["documents"]
        assert set(ids(found)) == {named(number) for number in range(30)}

    def test_groups(self, filled: Store) -> None:
        filled.write_documents([document(4, (1.0, 0.1), {7: 1.0}, doc_id="d1")])
        for found in (
            QdrantEmbeddingRetriever(filled, group_by="meta.doc_id", group_size=1).run([1.0, 0.0])["documents"],
            QdrantHybridRetriever(filled, group_by="meta.doc_id", group_size=1).run([1.0, 0.0], QUERY)["documents"],
        ):
            assert sorted(one.meta["doc_id"] for one in found) == ["d1", "d2", "d3"]

    async def test_asynchronously(self, filled: Store) -> None:
        found = await QdrantHybridRetriever(filled).run_async([1.0, 0.0], QUERY)
        assert len(found["documents"]) == 3
        assert await filled.count_documents_async() == 3

    def test_filters(self, filled: Store) -> None:
        for filters, expected in (
            ({"field": "meta.tags", "operator": "in", "value": ["b"]}, {2}),
            ({"field": "meta.tags", "operator": "in", "value": []}, set()),
            ({"field": "meta.tags", "operator": "not in", "value": []}, {1, 2, 3}),
            ({"field": "meta.tags", "operator": "not in", "value": ["b"]}, {1, 3}),
            ({"field": "meta.doc_id", "operator": "==", "value": "d1"}, {1}),
            ({"field": "meta.doc_id", "operator": "!=", "value": "d1"}, {2, 3}),
            ({"field": "meta.priority", "operator": ">=", "value": 2}, {2, 3}),
            ({"field": "meta.updated_at", "operator": "<", "value": "2024-02-01T00:00:00+00:00"}, {1}),
        ):
            matching = {named(number) for number in expected}
            found = QdrantEmbeddingRetriever(filled, filters=filters).run([1.0, 0.0])["documents"]
            assert set(ids(found)) == matching
            found = QdrantHybridRetriever(filled, filters=filters).run([1.0, 0.0], QUERY)["documents"]
            assert set(ids(found)) == matching
            assert set(ids(filled.filter_documents(filters))) == matching
            assert filled.count_documents_by_filter(filters) == len(matching), filters

    def test_joined_filters(self, filled: Store) -> None:
        one, other = ({"field": "meta.tags", "operator": "in", "value": [tag]} for tag in "ab")
        nothing = {"field": "meta.tags", "operator": "in", "value": []}
        for operator, conditions, expected in (
            ("AND", [one, other], {2}),
            ("OR", [one, other], {1, 2}),
            ("NOT", [one, other], {1, 3}),
            ("AND", [one, nothing], set()),
            ("OR", [one, nothing], {1, 2}),
            ("NOT", [nothing], {1, 2, 3}),
        ):
            found = filled.filter_documents({"operator": operator, "conditions": conditions})
            assert set(ids(found)) == {named(number) for number in expected}, operator

    def test_other_filters_are_refused(self, filled: Store, subtests: pytest.Subtests) -> None:
        for filters in (models.Filter(), {"field": "meta.x"}, {"operator": "AND", "conditions": []}):
            with subtests.test(filters=filters), pytest.raises((FilterError, ValueError)):
                QdrantEmbeddingRetriever(filled, filters=filters).run([1.0, 0.0])

    def test_a_pipeline_from_yaml(self, filled: Store) -> None:
        pipeline = Pipeline()
        pipeline.add_component("words", SparseTextEmbedder())
        pipeline.add_component("retriever", QdrantHybridRetriever(filled, top_k=2))
        pipeline.connect("words.sparse_embedding", "retriever.query_sparse_embedding")
        text = pipeline.dumps()
        again = Pipeline.loads(text, allowed_modules=ALLOWED_MODULES)
        assert again.dumps() == text
        found = again.run({"words": {"text": "барабан"}, "retriever": {"query_embedding": [1.0, 0.0]}})
        assert len(found["retriever"]["documents"]) == 2
        assert yaml.safe_load(text)["components"]["retriever"]["init_parameters"]["document_store"] == {
            "type": f"tenants.index.stores.{type(filled).__name__}",
            "init_parameters": {"return_embedding": False, "candidates": 40},
        }

    def test_the_profile_of_the_guide(self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "ask" / "profiles" / "hybrid.yaml"
        path.parent.mkdir(parents=True)
        (tmp_path / "ask" / "ask.yaml").write_bytes(YAML.read_bytes())
        path.write_text(profile("hybrid").replace("EdgeDocumentStore", type(store).__name__), encoding="utf-8")
        assert lint_file(path) == []
        dense = DenseSettings(space="tiny", dimensions=2, embedder={})
        open_collection(create=True, encoder=EncoderSettings(dense=dense).json_form, dimensions=2)
        store.write_documents(SparseDocumentEmbedder().run(DOCUMENTS)["documents"])
        monkeypatch.setattr("components.embed.text.embed_question", lambda *_: (1.0, 0.0))
        found = AskEngine(path).run(Turn("t", "текст 2"))
        cosines = {one.chunk_id: round(one.scores["cosine"], 2) for one in found.evidence.passages}
        assert cosines == {named(1): 1.0, named(2): 0.0, named(3): 0.71}
        assert found.degraded == ()
        monkeypatch.setattr("components.embed.text.embed_question", lambda *_: ())
        by_words = AskEngine(path).run(Turn("t", "текст 2")).evidence.passages
        assert by_words[0].chunk_id == named(2)
        assert "cosine" not in by_words[0].scores


class TestWriter:
    def test_documents_are_read_back(self, filled: Store) -> None:
        assert filled.count_documents() == 3
        [one] = filled.get_documents_by_id([named(1)])
        assert (one.id, one.content, one.embedding) == (named(1), "Текст 1", [1.0, 0.0])
        assert {**one.meta, "doc_id": "d1", "tags": ["a"], "priority": 1} == one.meta
        [same] = filled.filter_documents({"field": "meta.doc_id", "operator": "==", "value": "d1"})
        assert same.meta == one.meta

    def test_policies(self, filled: Store) -> None:
        changed = [document(1, (0.0, 1.0), {9: 1.0}), document(4, (0.0, 1.0), {9: 1.0})]
        with pytest.raises(DuplicateDocumentError):
            DocumentWriter(filled, DuplicatePolicy.FAIL).run(changed)
        assert DocumentWriter(filled, DuplicatePolicy.SKIP).run(changed) == {"documents_written": 1}
        assert filled.get_documents_by_id([named(1)])[0].embedding == [1.0, 0.0]
        assert DocumentWriter(filled, DuplicatePolicy.OVERWRITE).run(changed) == {"documents_written": 2}
        assert filled.get_documents_by_id([named(1)])[0].embedding == [0.0, 1.0]

    def test_any_id_is_a_point(self, store: Store) -> None:
        store.write_documents([Document(id="letters", content="Текст", embedding=[1.0, 0.0])])
        [one] = store.get_documents_by_id(["letters"])
        assert one.content == "Текст"
        store.delete_documents(["letters", "unknown"])
        assert store.count_documents() == 0

    def test_a_malformed_vector_stores_nothing(self, filled: Store) -> None:
        broken = document(9, (1.0, float("nan")), {7: 1.0})
        with pytest.raises(InternalFault, match="point_malformed"):
            filled.write_documents([document(8, (1.0, 0.0), {7: 1.0}), broken])
        assert filled.count_documents() == 3

    def test_what_is_written_is_recorded(self, filled: Store) -> None:
        meta = {**DOCUMENTS[0].meta, "chunk_index": 1}
        filled.write_documents([document(4, (1.0, 0.1), {7: 1.0}, **meta)])
        record = records.get("d1")
        assert record is not None
        assert record.chunk_ids == (named(1), named(4))
        recount()
        assert compare(count=True).clean
        filled.delete_documents([named(1), named(2)])
        assert {record.doc_id: record.chunk_ids for record in records.all()} == {
            "d1": (named(4),),
            "d3": (named(3),),
        }
        assert filled.delete_by_filter({"field": "meta.doc_id", "operator": "==", "value": "d3"}) == 1
        filled.delete_all_documents()
        assert (filled.count_documents(), records.all()) == (0, ())

    def test_an_embedded_document_is_found_by_its_words(self, store: Store) -> None:
        written = SparseDocumentEmbedder().run(
            [Document(content="Курьер привозит заказ.", meta={"title": "Доставка"}), Document(content="Гарантия.")]
        )["documents"]
        store.write_documents(written)
        query = SparseTextEmbedder().run("доставка курьером")["sparse_embedding"]
        [found] = QdrantSparseEmbeddingRetriever(store).run(query)["documents"]
        assert found.meta["title"] == "Доставка"


class TestOurIndex:
    """Chunks that our own ingest has written."""

    def test_documents_carry_what_a_passage_needs(self, store: Store) -> None:
        Ingest().run(
            [SourceDocument("e", "Ошибки", "# Ошибки\n\nE20: вода не сливается.\n\n## Сброс\n\nНажмите стоп.")]
        )
        query = SparseTextEmbedder().run("вода не сливается")["sparse_embedding"]
        found = QdrantSparseEmbeddingRetriever(store).run(query)["documents"][0]
        [stored] = open_collection().fetch([found.id])
        expected = from_payload(stored.payload, found.score or 0.0, found.meta["scores"])
        assert (found.id, found.content, found.meta) == (expected.id, expected.content, expected.meta)
        assert "E20" in (found.content or "")

    def test_an_index_without_dense_vectors_is_searched_by_words(self, store: Store) -> None:
        Ingest().run([SourceDocument("e", "Ошибки", "E20: вода не сливается.")])
        assert open_collection().dimensions == 0
        query = SparseTextEmbedder().run("вода не сливается")["sparse_embedding"]
        [found] = QdrantHybridRetriever(store, rrf_weights=[0.7, 0.3]).run([1.0], query)["documents"]
        assert "cosine" not in found.meta["scores"]
        assert QdrantEmbeddingRetriever(store).run([1.0]) == {"documents": []}


class TestTenants:
    def test_a_tenant_without_documents_reads_nothing_and_creates_nothing(self, store: Store) -> None:
        assert store.count_documents() == 0
        assert store.filter_documents() == store.get_documents_by_id([named(1)]) == []
        assert QdrantHybridRetriever(store).run([1.0, 0.0], QUERY) == {"documents": []}
        assert QdrantEmbeddingRetriever(store, group_by="meta.doc_id").run([1.0, 0.0]) == {"documents": []}
        store.delete_documents([named(1)])
        assert open_collection().encoder == ""
        with pytest.raises(InternalFault, match="collection_missing"):
            open_collection().upsert([])

    def test_a_lost_index_does_not_look_empty(self, filled: Store) -> None:
        tenant = registry.current()
        index.access._engine().remove(index.access._found(tenant, tenant.placement.generation))
        index.access._OPEN.clear()
        with pytest.raises(IndexDamaged):
            filled.count_documents()
        with pytest.raises(IndexDamaged):
            QdrantEmbeddingRetriever(filled).run([1.0, 0.0])

    def test_one_store_serves_every_tenant_its_own(self, filled: Store, tenant: Tenant) -> None:
        other = Tenant(f"{tenant.tenant_id}-2", "anna")
        Registry().add(other.tenant_id)
        with acting_as(other):
            assert QdrantEmbeddingRetriever(filled).run([1.0, 0.0]) == {"documents": []}
            filled.write_documents([document(1, (0.0, 1.0), {7: 1.0})])
            [own] = filled.filter_documents()
            assert own.embedding == [0.0, 1.0]
            index.remove_all()
        assert filled.count_documents() == 3

    def test_no_place_can_be_named(self, filled: Store) -> None:
        with pytest.raises(TypeError):
            type(filled)(index="other")  # type: ignore[call-arg]
        filled.index = "other"
        assert filled.count_documents() == 3

    def test_a_store_of_the_other_engine_is_refused(self, filled: Store, backend: str) -> None:
        other = TenantQdrantDocumentStore() if backend == "edge" else EdgeDocumentStore()
        with pytest.raises(InternalFault, match="index_engine_mismatch"):
            other.count_documents()

    def test_the_stock_class_still_deserialises_itself(self) -> None:
        stock = QdrantDocumentStore(location=":memory:", index="x")
        assert type(QdrantDocumentStore.from_dict(stock.to_dict())) is QdrantDocumentStore

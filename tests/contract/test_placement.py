"""Tenants that share a collection of the Qdrant server: answers as in a dedicated one, and no way to each other."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from threading import Event
from uuid import NAMESPACE_OID, uuid4, uuid5

import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.types import DuplicatePolicy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from components.ingest.reconcile import compare
from pipelines.ingest.library import Library
from pipelines.ingest.maintenance import NightlyCheck
from pipelines.ingest.usecase import Ingest
from settings import Settings, get_settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import IndexDamaged
from tenants.core.json import Json
from tenants.core.points import Conditions, Point, Vector
from tenants.index import DENSE, SPARSE, Collection, access, open_collection
from tenants.index.stores import TenantQdrantDocumentStore
from tenants.knowledge import generations
from tenants.work import jobs
from tests.contract.test_trial import QUESTIONS, SHELF, searched
from tests.fake_qdrant import FakeQdrant, Recorded

WORDS = st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True)
DIRECTIONS = st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.8, -0.6)])
CHUNKS = st.lists(st.tuples(WORDS, DIRECTIONS), min_size=1, max_size=8)


@pytest.fixture
def tiered(
    fake_url: tuple[FakeQdrant, str], installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeQdrant]:
    """An installation whose tenants share collections of a fake server."""
    fake, url = fake_url
    monkeypatch.setenv("OPORA_QDRANT_URL", url)
    _place(monkeypatch, "tiered")
    yield fake
    index.close_all()


def _place(monkeypatch: pytest.MonkeyPatch, placement: str, chunks: int = 1_000) -> None:
    monkeypatch.setenv("OPORA_PLACEMENT", placement)
    monkeypatch.setenv("OPORA_SHARED_CHUNKS", str(chunks))
    get_settings.cache_clear()


def _tenant() -> Tenant:
    tenant = Tenant(f"t{uuid4().hex}", "anna")
    Registry().add(tenant.tenant_id)
    return tenant


def _point(number: int, words: list[int], direction: tuple[float, float] = (1.0, 0.0)) -> Point:
    point_id = str(uuid5(NAMESPACE_OID, str(number)))
    payload: dict[str, Json] = {
        "id": point_id,
        "content": f"Текст {number}",
        "meta": {"doc_id": f"d{number % 3}", "tags": ["a"]},
    }
    return Point(point_id, {SPARSE: {word: 1.0 + word for word in words}, DENSE: direction}, payload)


def _filled(chunks: list[tuple[list[int], tuple[float, float]]]) -> Collection:
    collection = open_collection(create=True, encoder="one", dimensions=2)
    collection.upsert([_point(number, *chunk) for number, chunk in enumerate(chunks)])
    return collection


def _seen(collection: Collection) -> object:
    """Return everything that a tenant can see, equal scores in any order."""

    def ranked(conditions: Conditions | None = None) -> Mapping[str, object]:
        queries: dict[str, Vector] = {SPARSE: dict.fromkeys(range(5), 0.5), DENSE: (0.8, 0.6)}
        found = collection.search(queries, limit=20, conditions=conditions)
        return {
            name: sorted((round(hit.score, 4), hit.id, str(hit.payload)) for hit in hits)
            for name, hits in found.items()
        }

    return (
        ranked(),
        ranked(Conditions({"meta.doc_id": ("d1",)})),
        {word: round(factor, 4) for word, factor in collection.inverse_frequencies(range(6)).items()},
        sorted((hit.id, str(hit.payload), str(hit.dense)) for hit in collection.scan(batch=2, dense=True)),
        [hit.payload for hit in collection.fetch([_point(number, []).id for number in range(9)])],
        collection.count(),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(own=CHUNKS, others=CHUNKS, later=CHUNKS)
def test_answers_depend_on_neither_tier_nor_neighbours(
    tiered: FakeQdrant,
    own: list[tuple[list[int], tuple[float, float]]],
    others: list[tuple[list[int], tuple[float, float]]],
    later: list[tuple[list[int], tuple[float, float]]],
) -> None:
    with pytest.MonkeyPatch.context() as environment:
        _place(environment, "own")
        with acting_as(_tenant()):
            expected = _seen(_filled(own))
        _place(environment, "tiered")
        tenant, neighbour = _tenant(), _tenant()
        with acting_as(neighbour):
            _filled(others)
        with acting_as(tenant):
            shared = _filled(own)
            assert getattr(shared, "name", "") == "shared~2"
            assert _seen(shared) == expected
        with acting_as(neighbour):
            _filled(later).delete([_point(0, []).id])
        with acting_as(tenant):
            assert _seen(shared) == expected
            index.remove_all()
        with acting_as(neighbour):
            index.remove_all()


def _restricted(request: Recorded, owner: str) -> bool:
    """Return whether a request about points of a shared collection is restricted to one generation."""
    body, own = request.body, {"key": "tenant", "match": {"value": owner}}

    def narrowed(matching: object) -> bool:
        return isinstance(matching, dict) and own in matching.get("must", ())

    def narrowed_search(search: dict[str, object]) -> bool:
        params = search.get("params") or {}
        by_weight = search.get("using") == SPARSE
        counted_apart = isinstance(params, dict) and narrowed((params.get("idf") or {}).get("corpus"))
        parts = search.get("prefetch") or []
        assert isinstance(parts, list)
        return narrowed(search.get("filter")) and counted_apart >= by_weight and all(map(narrowed_search, parts))

    if request.method == "PUT":
        owners = {point["payload"]["tenant"] for point in body["points"]}
        return owners == {owner} and narrowed(body["update_filter"])
    if request.path == "/points/batch":
        return all(narrowed(change["overwrite_payload"]["filter"]) for change in body["operations"])
    if request.path == "/points/query/batch":
        return all(map(narrowed_search, body["searches"]))
    if request.path.startswith("/points/query"):
        return narrowed_search(body)
    return narrowed(body["filter"])


def test_no_request_to_a_shared_collection_lacks_the_filter(tiered: FakeQdrant) -> None:
    tenant = _tenant()
    with acting_as(_tenant()):
        _filled([([1], (1.0, 0.0))])
    tiered.requests.clear()
    with acting_as(tenant):
        collection = _filled([([1, 2], (1.0, 0.0)), ([2], (0.0, 1.0))])
        _seen(collection)
        collection.describe({_point(1, []).id: _point(1, []).payload})
        collection.delete([_point(1, []).id])
        _use_stock_store()
        index.remove_all()
    about_points = [one for one in tiered.requests if one.path.startswith("/points")]
    assert {one.collection for one in about_points} == {"shared~2"}
    assert {(one.method, one.path) for one in about_points} == {
        ("PUT", "/points"),
        ("POST", "/points/batch"),
        ("POST", "/points/count"),
        ("POST", "/points/delete"),
        ("POST", "/points/query"),
        ("POST", "/points/query/batch"),
        ("POST", "/points/query/groups"),
        ("POST", "/points/scroll"),
    }
    owner = f"{tenant.tenant_id}~g000001"
    assert [one for one in about_points if not _restricted(one, owner)] == []
    assert not [one for one in tiered.requests if one.method == "DELETE"]


def _use_stock_store() -> None:
    store = TenantQdrantDocumentStore()
    sparse = SparseEmbedding(indices=[2], values=[1.0])
    store.write_documents(
        [Document(id="x", content="x", meta={"doc_id": "x"}, embedding=[1.0, 0.0], sparse_embedding=sparse)],
        DuplicatePolicy.OVERWRITE,
    )
    assert len(store.filter_documents()) == store.count_documents() == 2
    assert store.count_documents_by_filter({"field": "meta.doc_id", "operator": "==", "value": "x"}) == 1
    for group_by in (None, "meta.doc_id"):
        assert len(store._query_by_sparse(sparse, top_k=5, group_by=group_by)) == 2
        assert len(store._query_by_embedding([1.0, 0.0], top_k=5, group_by=group_by)) == 2
        assert len(store._query_hybrid([1.0, 0.0], sparse, top_k=5, group_by=group_by)) == 2
    store.get_metadata_fields_info()
    store.delete_documents(["x"])


def test_a_tenant_moves_by_size_without_a_gap(tiered: FakeQdrant, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest, tenant, neighbour = Ingest(), _tenant(), _tenant()
    with acting_as(neighbour):
        ingest.run(SHELF)
    with acting_as(tenant):
        ingest.run(SHELF)
        shared = open_collection()
        expected = [searched(shared, question) for question in QUESTIONS]
        assert not generations.move_due()
        _place(monkeypatch, "tiered", chunks=2)
        assert generations.move_due()
        NightlyCheck(Library(ingest.rewrite)).check_all(Event())
        assert [job.kind for job in jobs.open_jobs()] == ["rebuild"]
        steps = ingest.rebuild().steps()
        for _ in steps:
            assert [searched(open_collection(), question) for question in QUESTIONS] == expected
        own = open_collection()
        assert (getattr(shared, "name", ""), getattr(own, "name", "")) == ("shared~0", f"{tenant.tenant_id}~g000002")
        assert [searched(own, question) for question in QUESTIONS] == expected
        # A search that began before the move ends where it began.
        assert [searched(shared, question) for question in QUESTIONS] == expected
        assert not generations.move_due()
        monkeypatch.setattr(access, "IN_FLIGHT", timedelta(0))
        index.sweep()
        assert shared.count() == 0
        assert [one.state for one in generations.all()] == ["in_force"]
        _place(monkeypatch, "tiered", chunks=5)
        # A tenant with a dedicated collection returns at half the size.
        assert not generations.move_due()
        _place(monkeypatch, "tiered")
        ingest.rebuild().finish()
        index.sweep()
        assert getattr(open_collection(), "name", "") == "shared~0"
        assert [searched(open_collection(), question) for question in QUESTIONS] == expected
        assert compare().clean
        with pytest.raises(IndexDamaged):
            own.count()
    with acting_as(neighbour):
        assert compare().clean


def test_a_lost_shared_collection_is_written_anew_for_each_tenant(tiered: FakeQdrant) -> None:
    ingest = Ingest()
    both = [_tenant(), _tenant()]
    for tenant in both:
        with acting_as(tenant):
            ingest.run(SHELF)
    with access._engine().call() as client:  # type: ignore[attr-defined]
        client.delete_collection("shared~0")
    for tenant in both:
        with acting_as(tenant):
            assert index.damage() in {"missing", "incomplete"}
            Library(ingest.rewrite).check(mend=True)
            assert index.damage() is None
            assert compare().clean
    with acting_as(both[0]):
        index.remove_all()
    with acting_as(both[1]):
        assert compare().clean


def test_collections_are_created_with_explicit_shards_and_replicas(
    tiered: FakeQdrant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPORA_QDRANT_REPLICAS", "3")
    monkeypatch.setenv("OPORA_QDRANT_WRITTEN_REPLICAS", "2")
    index.close_all()
    tiered.requests.clear()
    for placement in ("own", "tiered"):
        _place(monkeypatch, placement)
        with acting_as(_tenant()):
            open_collection(create=True, encoder="one", dimensions=7)
            assert generations.all()[0].shared == ("shared~7" if placement == "tiered" else "")
    created = [one.body for one in tiered.requests if (one.method, one.path) == ("PUT", "")]
    assert [(one["shard_number"], one["replication_factor"], one["write_consistency_factor"]) for one in created] == [
        (1, 3, 2),
        (1, 3, 2),
    ]
    by_tenant = [one for one in tiered.requests if one.path == "/index" and one.body["field_name"] == "tenant"]
    assert [(one.collection, one.body["field_schema"]["is_tenant"]) for one in by_tenant] == [("shared~7", True)]


def test_the_embedded_engine_refuses_shared_collections(
    installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place(monkeypatch, "tiered")
    with pytest.raises(ValidationError, match="placement_embedded"):
        get_settings()

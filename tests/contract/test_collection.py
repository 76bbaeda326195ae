"""Behaviour of every index backend, seen through `tenants.index`."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from math import inf, nan
from pathlib import Path
from uuid import NAMESPACE_OID, uuid4, uuid5
from weakref import ref

import numpy as np
import pytest
from cachetools import LRUCache
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from settings import get_settings
from tenants import index
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import InternalFault, Invalid, NotFound
from tenants.core.json import Json
from tenants.core.points import Conditions, Point, Sparse
from tenants.index import SPARSE, Collection, open_collection
from tenants.storage import database
from tenants.storage.tables import TenantRow

SHARED = 9_999
"""A dimension that every `point` has."""


def named(number: int) -> str:
    return str(uuid5(NAMESPACE_OID, str(number)))


def point(number: int, stems: dict[int, float] | None = None, **meta: Json) -> Point:
    return Point(
        named(number),
        {SPARSE: {**({number: 1.0} if stems is None else stems), SHARED: 1.0, 1000 + number: 0.5}},
        {"id": named(number), "content": f"текст {number}", "meta": {"doc_id": f"d{number}", **meta}},
    )


def sparse(weights: dict[int, float]) -> Sparse:
    return Sparse(np.array([*weights], np.uint32), np.array([*weights.values()], np.float64))


@pytest.fixture
def chunks(tenant: Tenant) -> Collection:
    return open_collection(create=True)


def ids(collection: Collection, conditions: Conditions | None = None) -> set[str]:
    return {hit.id for hit in collection.scan(conditions=conditions, batch=2)}


def test_a_missing_collection_reads_as_empty_and_is_not_created(tenant: Tenant, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    collection = open_collection()
    assert collection.count() == 0
    assert collection.search({SPARSE: {SHARED: 1.0}}, limit=5) == {SPARSE: []}
    assert collection.fetch([named(1)]) == []
    assert list(collection.scan()) == []
    collection.delete([named(1)])
    with pytest.raises(InternalFault):
        collection.upsert([point(1)])
    assert sorted(tmp_path.rglob("*")) == before
    assert open_collection(create=True).count() == 0


def test_an_unregistered_tenant_has_no_collection(backend: str) -> None:
    with acting_as(Tenant("nobody", "anna")), pytest.raises(NotFound) as refused:
        open_collection(create=True)
    assert refused.value.code == "tenant_unknown"


def test_a_stored_point_is_found_as_it_was_stored(chunks: Collection) -> None:
    stored = Point(named(1), {SPARSE: {7: 1.5}}, point(1, tags=["a"], none=None, n=1).payload)
    chunks.upsert([stored, point(2)])
    results = chunks.search({SPARSE: {7: 1.0}}, limit=5)
    assert set(results) == {SPARSE}
    assert [(hit.id, hit.payload) for hit in results[SPARSE]] == [(named(1), stored.payload)]
    assert results[SPARSE][0].score > 0


def test_arrays_are_stored_as_mappings_are(chunks: Collection) -> None:
    weights = {3: 0.25, 7: 1.5, 2**32 - 1: 0.5}
    chunks.upsert([Point(named(1), {SPARSE: weights}, {}), Point(named(2), {SPARSE: sparse(weights)}, {})])
    for dimension in weights:
        one, other = chunks.search({SPARSE: {dimension: 1.0}}, limit=5)[SPARSE]
        assert {one.id, other.id} == {named(1), named(2)}
        assert one.score == other.score


def test_rare_outranks_common(chunks: Collection) -> None:
    chunks.upsert([point(number, {1: 1.0}) for number in range(20)] + [point(20, {2: 1.0})])
    hits = chunks.search({SPARSE: {1: 1.0, 2: 1.0}}, limit=30)[SPARSE]
    assert hits[0].id == named(20)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(hits) == 21


def test_scores_are_inverse_document_frequencies(chunks: Collection) -> None:
    """Qdrant's formula: ln(1 + (points - holders + 0.5) / (holders + 0.5))."""
    chunks.upsert([point(number, {1: 2.0} if number < 3 else {2: 1.0}) for number in range(10)])
    hits = chunks.search({SPARSE: {1: 0.5}}, limit=10)[SPARSE]
    assert [hit.score for hit in hits] == pytest.approx([1.1451323] * 3, rel=1e-4)


def test_limits_and_empty_queries(chunks: Collection) -> None:
    chunks.upsert([point(number, {1: 1.0}) for number in range(5)])
    assert len(chunks.search({SPARSE: {1: 1.0}}, limit=3)[SPARSE]) == 3
    assert chunks.search({SPARSE: {99: 1.0}}, limit=3) == {SPARSE: []}
    assert chunks.search({SPARSE: {}}, limit=3) == {SPARSE: []}
    assert chunks.search({SPARSE: {SHARED: 1.0}}, limit=0) == {SPARSE: []}
    assert chunks.search({}, limit=3) == {}


def test_payloads_can_be_left_out_and_fetched(chunks: Collection) -> None:
    chunks.upsert([point(1), point(2)])
    hits = chunks.search({SPARSE: {SHARED: 1.0}}, limit=5, payloads=False)[SPARSE]
    assert {hit.id for hit in hits} == {named(1), named(2)}
    assert all(hit.payload == {} for hit in hits)
    assert [hit.payload for hit in chunks.fetch([named(2)])] == [point(2).payload]


def test_an_upsert_replaces_vectors_and_payload(chunks: Collection) -> None:
    chunks.upsert([point(1, {5: 1.0}, trust="raw")])
    assert chunks.fetch([named(1)])[0].payload == point(1, trust="raw").payload
    chunks.upsert([point(1, {6: 1.0}, trust="accepted")])
    assert chunks.count() == 1
    assert chunks.search({SPARSE: {5: 1.0}}, limit=5)[SPARSE] == []
    assert [hit.payload for hit in chunks.search({SPARSE: {6: 1.0}}, limit=5)[SPARSE]] == [
        point(1, trust="accepted").payload
    ]
    assert chunks.fetch([named(1)])[0].payload == point(1, trust="accepted").payload


def test_a_payload_changes_without_its_vectors(chunks: Collection) -> None:
    chunks.upsert([point(1, {5: 1.0}, tags=["a"]), point(2, {5: 1.0})])
    assert len(chunks.search({SPARSE: {5: 1.0}}, limit=5)[SPARSE]) == 2
    changed = point(1, tags=["b"]).payload
    chunks.describe({named(1): changed, named(99): changed})
    chunks.describe({})
    results = chunks.search({SPARSE: {5: 1.0}}, limit=5, conditions=Conditions({"meta.tags": ("b",)}))
    assert [(hit.id, hit.payload) for hit in results[SPARSE]] == [(named(1), changed)]
    assert chunks.fetch([named(1), named(2), named(99)])[1].payload == point(2).payload
    assert ids(chunks, Conditions({"meta.tags": ("a",)})) == set()
    assert chunks.count() == 2


def test_deleted_points_are_gone_and_unknown_ids_ignored(chunks: Collection) -> None:
    chunks.upsert([point(1), point(2)])
    assert len(chunks.fetch([named(1), named(2)])) == 2
    chunks.delete([named(1), named(99)])
    chunks.delete([])
    assert ids(chunks) == {named(2)}
    assert [hit.id for hit in chunks.search({SPARSE: {SHARED: 1.0}}, limit=5)[SPARSE]] == [named(2)]
    assert chunks.fetch([named(1)]) == []


def test_fetching_keeps_the_requested_order(chunks: Collection) -> None:
    chunks.upsert([point(number) for number in range(5)])
    wanted = [named(3), named(99), named(0).upper(), named(4)]
    assert [hit.id for hit in chunks.fetch(wanted)] == [named(3), named(0), named(4)]
    assert chunks.fetch([]) == []


def test_conditions_hold_together(chunks: Collection) -> None:
    chunks.upsert(
        [
            point(1, tags=["a", "b"], updated_at="2024-01-01", source_type="faq"),
            point(2, tags=["b"], updated_at="2024-01-31", source_type="faq"),
            point(3, tags=[], updated_at="", source_type="guide"),
            point(4),
        ]
    )

    def matching(conditions: Conditions) -> set[int]:
        result = chunks.search({SPARSE: {SHARED: 1.0}}, limit=9, conditions=conditions)[SPARSE]
        assert ids(chunks, conditions) == {hit.id for hit in result}
        return {number for number in range(9) if named(number) in {hit.id for hit in result}}

    assert matching(Conditions()) == {1, 2, 3, 4}
    assert matching(Conditions({"meta.tags": ("a", "c")})) == {1}
    assert matching(Conditions({"meta.tags": ("b",), "meta.source_type": ("faq", "guide")})) == {1, 2}
    assert matching(Conditions({"meta.tags": ("b",), "meta.source_type": ("guide",)})) == set()
    assert matching(Conditions({}, {"meta.updated_at": ("2024-01-01", "2024-01-31")})) == {1, 2}
    assert matching(Conditions({}, {"meta.updated_at": ("2024-01-02", None)})) == {2}
    assert matching(Conditions({}, {"meta.updated_at": (None, "2024-01-30")})) == {1}
    assert matching(Conditions({}, {"meta.updated_at": (None, None)})) == {1, 2, 3, 4}
    assert matching(Conditions({"meta.doc_id": ("d2",)}, {"meta.updated_at": ("2024-01-01", None)})) == {2}


def test_accepting_nothing_matches_nothing(chunks: Collection) -> None:
    """The trap of the stock filters: `in []` there matches everything."""
    chunks.upsert([point(1, tags=["a"])])
    for conditions in (Conditions({"meta.tags": ()}), Conditions({"meta.doc_id": ("d1",), "meta.tags": ()})):
        assert chunks.search({SPARSE: {SHARED: 1.0}}, limit=5, conditions=conditions) == {SPARSE: []}
        assert ids(chunks, conditions) == set()


def test_an_invalid_day_is_refused(chunks: Collection, subtests: pytest.Subtests) -> None:
    for bounds in (("yesterday", None), (None, "2024-13-01"), ("2024-01-01' OR 1", None)):
        with subtests.test(bounds=bounds), pytest.raises(Invalid) as refused:
            chunks.search({SPARSE: {SHARED: 1.0}}, limit=5, conditions=Conditions({}, {"meta.updated_at": bounds}))
        assert refused.value.code == "filter_invalid"


def test_a_malformed_point_stores_nothing(chunks: Collection, subtests: pytest.Subtests) -> None:
    for broken in (
        Point(named(1), {SPARSE: {1: nan}}, {}),
        Point(named(1), {SPARSE: {1: inf, 2: -inf}}, {}),
        Point(named(1), {SPARSE: {1: 1e39}}, {}),
        Point(named(1), {SPARSE: {-1: 1.0}}, {}),
        Point(named(1), {SPARSE: {2**32: 1.0}}, {}),
        Point(named(1), {"text-dense": {1: 1.0}}, {}),
        Point(named(1), {SPARSE: sparse({1: nan})}, {}),
        Point(named(1), {SPARSE: sparse({2: 1.0, 1: 1.0})}, {}),
        Point(named(1), {SPARSE: Sparse(np.array([1, 1], np.uint32), np.ones(2))}, {}),
        Point(named(1), {SPARSE: Sparse(np.array([1, 2], np.uint32), np.ones(1))}, {}),
        Point(named(1), {SPARSE: Sparse(np.array([-1, 2]), np.ones(2))}, {}),
        Point(named(1), {"text-dense": sparse({1: 1.0})}, {}),
        Point("not a uuid", {SPARSE: {1: 1.0}}, {}),
    ):
        with subtests.test(broken=broken), pytest.raises(InternalFault):
            chunks.upsert([point(2), broken])
        assert chunks.count() == 0


def test_an_unknown_vector_is_a_fault(chunks: Collection) -> None:
    with pytest.raises(InternalFault):
        chunks.search({"text-dense": {1: 1.0}}, limit=1)
    with pytest.raises(InternalFault):
        chunks.fetch(["not a uuid"])


def test_tenants_see_only_their_own_chunks(backend: str) -> None:
    """Ids that a careless naming would bring together, on one engine."""
    for tenant_id in ("ёлка", "Ёлка", "елка", "acme", "ACME", f"x{uuid4().hex}"):
        tenant = Tenant(tenant_id if backend != "server" else tenant_id + uuid4().hex, "anna")
        Registry().add(tenant.tenant_id)
        with acting_as(tenant):
            assert open_collection().count() == 0
            collection = open_collection(create=True)
            collection.upsert([Point(named(1), {SPARSE: {SHARED: 1.0}}, {"content": tenant.tenant_id, "meta": {}})])
            result = collection.search({SPARSE: {SHARED: 1.0}}, limit=9)[SPARSE]
            assert [hit.payload["content"] for hit in result] == [tenant.tenant_id]


def test_the_least_used_collection_is_released_and_opened_again(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.access, "_OPEN", LRUCache(1))
    other = Tenant(f"t{uuid4().hex}", "boris")
    Registry().add(other.tenant_id)
    mine = open_collection(create=True)
    mine.upsert([point(1)])
    with acting_as(other):
        open_collection(create=True).upsert([point(2), point(3)])
    assert open_collection() is mine, "a collection in use is not opened twice"
    with acting_as(other):
        assert open_collection().count() == 2
    released = ref(mine)
    del mine
    assert released() is None
    assert open_collection().count() == 1


def test_a_collection_of_another_tenant_is_not_opened(chunks: Collection, tenant: Tenant) -> None:
    """The registry holds the location of a tenant's chunks; the collection holds its owner."""
    chunks.upsert([point(1)])
    thief = Tenant(f"t{uuid4().hex}", "eve")
    Registry().add(thief.tenant_id)
    with acting_as(thief):
        open_collection(create=True)
    with database.across_tenants(write=True) as session:
        owner, other = (session.get_one(TenantRow, name) for name in (tenant.tenant_id, thief.tenant_id))
        name, owner.collection = owner.collection, "elsewhere"
        session.flush()
        other.collection = name
    if get_settings().qdrant_url != ":memory:":  # which would forget its collections
        index.close_all()
    index.access._OPEN.clear()
    index.access._IN_USE.clear()
    get_settings.cache_clear()
    registry_cache_expired(thief.tenant_id)
    with acting_as(thief), pytest.raises(InternalFault) as refused:
        open_collection()
    assert refused.value.code == "collection_foreign"


def registry_cache_expired(tenant_id: str) -> None:
    with acting_as(Tenant(tenant_id, "")):
        registry.expire()


def test_stored_points_survive_reopening(chunks: Collection, backend: str) -> None:
    if backend == "memory":
        pytest.skip("memory forgets")
    chunks.upsert([point(number) for number in range(300)])
    chunks.delete([named(number) for number in range(0, 300, 2)])
    index.close_all()
    again = open_collection()
    assert again.count() == 150
    assert again.fetch([named(1)])[0].payload == point(1).payload


def test_reading_while_writing(chunks: Collection) -> None:
    """Readers see whole points: no error, no payload but the one stored with the id."""

    def read() -> Iterator[str]:
        for _ in range(20):
            for hit in chunks.search({SPARSE: {SHARED: 1.0}}, limit=50)[SPARSE]:
                yield f"{hit.id} {hit.payload['id']}"

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(copy_context().run, lambda: list(read())) for _ in range(3)]
        for start in range(0, 60, 6):
            chunks.upsert([point(number) for number in range(start, start + 6)])
            chunks.delete([named(start)])
        for seen in readers:
            assert all(line.split()[0] == line.split()[1] for line in seen.result())
    assert chunks.count() == 50


STEPS = st.lists(
    st.tuples(st.booleans(), st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True), st.integers(0, 3)),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_any_history_leaves_what_a_dictionary_would(
    chunks: Collection, steps: list[tuple[bool, list[int], int]]
) -> None:
    chunks.delete(list(ids(chunks)))
    kept: dict[str, int] = {}
    for store, numbers, version in steps:
        if store:
            chunks.upsert([point(number, {version: 1.0}, version=version) for number in numbers])
            kept |= {named(number): version for number in numbers}
        else:
            chunks.delete([named(number) for number in numbers])
            kept = {point_id: at for point_id, at in kept.items() if point_id not in set(map(named, numbers))}
    assert chunks.count() == len(kept)
    for version in range(4):
        result = chunks.search({SPARSE: {version: 1.0}}, limit=50)[SPARSE]
        assert {hit.id for hit in result} == {point_id for point_id, at in kept.items() if at == version}
    assert {hit.id for hit in chunks.scan(batch=3)} == kept.keys()

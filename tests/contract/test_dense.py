"""Dense vectors in a collection that has a space for them, on every backend."""

from math import inf, nan, sqrt
from uuid import NAMESPACE_OID, uuid5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from settings import get_settings
from tenants import index
from tenants.core.context import Tenant
from tenants.core.errors import InternalFault
from tenants.core.points import Conditions, Dense, Point, Vector
from tenants.index import DENSE, Collection, open_collection
from tenants.knowledge import generations


def named(number: int) -> str:
    return str(uuid5(NAMESPACE_OID, str(number)))


def point(number: int, dense: Dense | None = None) -> Point:
    vectors: dict[str, Vector] = {"text-sparse": {1: 1.0}}
    if dense is not None:
        vectors[DENSE] = dense
    return Point(named(number), vectors, {"content": str(number), "meta": {"doc_id": f"d{number}"}})


@pytest.fixture
def chunks(tenant: Tenant) -> Collection:
    return open_collection(create=True, encoder="dense", dimensions=2)


def hit_ids(collection: Collection, query: Dense, conditions: Conditions | None = None) -> list[str]:
    hits = collection.search({DENSE: query}, limit=9, conditions=conditions)[DENSE]
    return [str(hit.payload["content"]) for hit in hits]


def test_the_nearest_by_angle_comes_first_whatever_the_lengths(chunks: Collection) -> None:
    chunks.upsert([point(1, (9.0, 0.0)), point(2, (1.0, 1.0)), point(3, (0.0, 0.1)), point(4)])
    hits = chunks.search({DENSE: (0.0, 5.0), "text-sparse": {1: 1.0}}, limit=9)
    assert [hit.payload["content"] for hit in hits[DENSE]] == ["3", "2", "1"]
    assert [hit.score for hit in hits[DENSE]] == pytest.approx([1.0, sqrt(0.5), 0.0], abs=1e-6)
    assert len(hits["text-sparse"]) == 4


def test_conditions_narrow_it(chunks: Collection) -> None:
    chunks.upsert([point(1, (1.0, 0.0)), point(2, (1.0, 0.1))])
    assert hit_ids(chunks, (1.0, 0.0), Conditions({"meta.doc_id": ("d2",)})) == ["2"]
    assert hit_ids(chunks, (1.0, 0.0), Conditions({"meta.doc_id": ()})) == []


def test_a_requested_dense_vector_is_returned_normalised(chunks: Collection) -> None:
    chunks.upsert([point(1, (3.0, 4.0)), point(2)])
    by_id = {hit.id: hit.dense for hit in chunks.scan(dense=True)}
    assert by_id[named(1)] == pytest.approx([0.6, 0.8])
    assert by_id[named(2)] is None
    first, second = chunks.fetch([named(1), named(2)], dense=True)
    assert first.dense == pytest.approx([0.6, 0.8])
    assert (second.dense, second.payload) == (None, point(2).payload)
    assert [hit.dense for hit in (*chunks.scan(), *chunks.fetch([named(1)]))] == [None] * 3


def test_a_malformed_dense_vector_is_a_fault(chunks: Collection, subtests: pytest.Subtests) -> None:
    for dense in ((1.0,), (1.0, 0.0, 0.0), (nan, 0.0), (inf, 0.0), (inf, -inf), ()):
        with subtests.test(dense=dense), pytest.raises(InternalFault):
            chunks.upsert([point(1), point(2, dense)])
        with subtests.test(dense=dense), pytest.raises(InternalFault):
            chunks.search({DENSE: dense}, limit=1)
        assert chunks.count() == 0


def test_without_a_space_there_is_no_such_vector(tenant: Tenant) -> None:
    collection = open_collection(create=True)
    assert collection.dimensions == 0
    with pytest.raises(InternalFault):
        collection.upsert([point(1, (1.0, 0.0))])
    with pytest.raises(InternalFault):
        collection.search({DENSE: (1.0, 0.0)}, limit=1)
    collection.upsert([point(1)])
    assert [hit.dense for hit in collection.scan(dense=True)] == [None]


def test_each_generation_has_its_own_size(chunks: Collection, tenant: Tenant) -> None:
    chunks.upsert([point(1, (1.0, 0.0))])
    number = generations.begin("larger", 3)
    open_collection(create=True, generation=number).upsert([point(1, (0.0, 0.0, 1.0))])
    assert hit_ids(open_collection(), (1.0, 0.0)) == ["1"]
    index.activate(number)
    assert (open_collection().dimensions, open_collection().encoder) == (3, "larger")
    assert hit_ids(open_collection(), (0.0, 0.0, 1.0)) == ["1"]
    assert hit_ids(chunks, (1.0, 0.0)) == ["1"]
    if get_settings().qdrant_url != ":memory:":  # which would forget its collections
        index.close_all()
        assert hit_ids(open_collection(), (0.0, 0.0, 1.0)) == ["1"]


numbers = st.floats(-1, 1, width=32).filter(lambda number: number == 0 or abs(number) > 0.01)
vectors = st.lists(st.tuples(numbers, numbers).filter(any), min_size=1, max_size=8)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(vectors, st.tuples(numbers, numbers).filter(any))
def test_scores_are_cosines(chunks: Collection, stored: list[tuple[float, float]], query: tuple[float, float]) -> None:
    chunks.delete([hit.id for hit in chunks.scan()])
    chunks.upsert([point(number, one) for number, one in enumerate(stored)])
    hits = chunks.search({DENSE: query}, limit=9)[DENSE]

    def cosine(one: tuple[float, float]) -> float:
        lengths = sqrt(sum(x * x for x in one)) * sqrt(sum(x * x for x in query))
        return sum(a * b for a, b in zip(one, query, strict=True)) / lengths

    expected = {named(number): cosine(one) for number, one in enumerate(stored)}
    assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-4)

"""Generations of a collection, on every backend: switch during searches, rollback, removal."""

from datetime import timedelta
from pathlib import Path
from uuid import NAMESPACE_OID, uuid4, uuid5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from settings import get_settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import InternalFault, NotFound
from tenants.core.points import Point
from tenants.index import SPARSE, Collection, access, open_collection
from tenants.knowledge import generations, lexicon
from tenants.knowledge.lexicon import ChunkTerms


@pytest.fixture(autouse=True)
def _nobody_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "IN_FLIGHT", timedelta(0))


@pytest.fixture
def first(tenant: Tenant) -> Collection:
    collection = open_collection(create=True, encoder="one")
    collection.upsert([point(1)])
    return collection


def point(number: int) -> Point:
    return Point(str(uuid5(NAMESPACE_OID, str(number))), {SPARSE: {1: 1.0}}, {"content": str(number), "meta": {}})


def built(*numbers: int, encoder: str = "two") -> int:
    generation = generations.begin(encoder)
    open_collection(create=True, generation=generation).upsert([point(number) for number in numbers])
    return generation


def contents(collection: Collection) -> set[object]:
    return {hit.payload["content"] for hit in collection.search({"text-sparse": {1: 1.0}}, limit=20)["text-sparse"]}


def states() -> dict[int, str]:
    return {generation.number: generation.state for generation in generations.all()}


def test_the_encoder_is_kept_with_the_generation(first: Collection) -> None:
    assert (first.encoder, open_collection(create=True, encoder="other").encoder) == ("one", "one")
    number = built(2)
    assert open_collection(generation=number).encoder == "two"
    index.activate(number)
    assert open_collection().encoder == "two"
    if get_settings().qdrant_url != ":memory:":  # which would forget its collections
        del first
        index.close_all()
        assert open_collection().encoder == "two"


def test_a_generation_being_built_is_not_searched(first: Collection) -> None:
    built(2, 3)
    assert contents(open_collection()) == {"1"}
    assert states() == {1: "in_force", 2: "building"}


def test_running_searches_finish_on_the_old_generation(first: Collection) -> None:
    index.activate(built(2))
    assert contents(open_collection()) == {"2"}
    assert contents(first) == {"1"}
    index.activate(built(3))
    index.sweep()
    assert contents(open_collection()) == {"3"}
    assert states() == {2: "kept", 3: "in_force"}


def test_a_rollback_drops_the_newer_generation(first: Collection) -> None:
    index.activate(built(2))
    index.activate(1)
    assert (contents(open_collection()), open_collection().encoder) == ({"1"}, "one")
    assert states() == {1: "in_force", 2: "dropped"}
    index.sweep()
    assert states() == {1: "in_force"}


def test_a_dropped_generation_stays_searchable_for_a_while(first: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "IN_FLIGHT", timedelta(hours=1))
    index.activate(built(2))
    newer = open_collection()
    index.activate(1)
    index.sweep()
    assert contents(newer) == {"2"}
    assert states() == {1: "in_force", 2: "dropped"}


def test_an_unfinished_generation_is_removed_with_its_files(first: Collection, tmp_path: Path) -> None:
    before = {path.name for path in tmp_path.rglob("*~g*")}
    number = built(2)
    lexicon.rebuild([ChunkTerms(frozenset({"a"}), frozenset({"a"}))], number)
    index.sweep()
    assert states() == {1: "in_force"}
    assert {path.name for path in tmp_path.rglob("*~g*")} == before
    assert open_collection(generation=number).count() == 0
    index.sweep()


def test_generation_numbers_are_never_reused(first: Collection) -> None:
    seen = [built(2) for _ in range(3)]
    index.sweep()
    assert built(2) not in seen


def test_the_generation_in_force_cannot_be_removed(first: Collection) -> None:
    with pytest.raises(InternalFault, match="generation_in_force"):
        index.remove(1)
    with pytest.raises(InternalFault, match="generation_in_force"):
        generations.forget(1)
    assert contents(open_collection()) == {"1"}


def test_each_generation_has_its_own_lexicon(first: Collection) -> None:
    def holding(stem: str) -> list[ChunkTerms]:
        return [ChunkTerms(frozenset({stem}), frozenset({stem}))]

    lexicon.apply(holding("old"))
    seen = {lexicon.current().revision}
    number = built(2)
    lexicon.rebuild(holding("new"), number)
    assert set(lexicon.current().stems) == {"old"}
    index.activate(number)
    lexicon.apply(holding("newer"))
    assert set(lexicon.current().stems) == {"new", "newer"}
    seen.add(lexicon.current().revision)
    index.activate(1)
    assert set(lexicon.current().stems) == {"old"}
    lexicon.apply(holding("last"))
    assert lexicon.current().revision not in seen  # equal revisions mean equal counts
    assert set(lexicon.current().stems) == {"old", "last"}


def test_tenants_switch_generations_independently(first: Collection) -> None:
    other = Tenant(f"t{uuid4().hex}", "anna")
    Registry().add(other.tenant_id)
    index.activate(built(2))
    with acting_as(other):
        assert states() == {}
        open_collection(create=True).upsert([point(9)])
        index.sweep()
        assert states() == {1: "in_force"}
        assert contents(open_collection()) == {"9"}
    assert states() == {1: "kept", 2: "in_force"}


def test_without_a_registered_tenant_there_is_nothing_to_switch(backend: str) -> None:
    with acting_as(Tenant("nobody", "anna")), pytest.raises(NotFound):
        index.activate(1)


@given(st.lists(st.sampled_from(["build", "switch", "back", "sweep", "write"]), max_size=10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8, deadline=None)
def test_any_history_leaves_one_complete_generation_in_force(backend: str, steps: list[str]) -> None:
    tenant = Tenant(f"t{uuid4().hex}", "anna")
    Registry().add(tenant.tenant_id)
    held: dict[int, set[object]] = {1: {"1"}}
    in_force, building, kept = 1, None, None
    with acting_as(tenant):
        open_collection(create=True).upsert([point(1)])
        for number, step in enumerate(steps, start=2):
            if step == "build" and building is None:
                building = built(number)
                held[building] = {str(number)}
            elif step == "switch" and building is not None:
                index.activate(building)
                in_force, kept, building = building, in_force, None
            elif step == "back" and kept is not None and building is None:
                index.activate(kept)
                in_force, kept = kept, None
            elif step == "sweep":
                index.sweep()
                building = None
            elif step == "write":
                open_collection().upsert([point(number)])
                held[in_force].add(str(number))
            assert contents(open_collection()) == held[in_force]
            result = states()
            assert [one for one, state in result.items() if state == "in_force"] == [in_force]
            assert [one for one, state in result.items() if state == "kept"] == ([kept] if kept else [])

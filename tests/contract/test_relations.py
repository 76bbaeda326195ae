"""Edges and rejected approaches, on every database: ownership, lifetime and precedence."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from settings import Settings
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.knowledge import agreements, document_edges, documents, rejected, relations
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.rejected import Rejected
from tenants.storage import database

ACME, OTHER = Tenant("acme", "anna"), Tenant("other", "anna")
KINDS = ("depends_on", "implements", "decision_for", "related_to", "supersedes")


def record(doc_id: str, **overrides: str) -> DocumentRecord:
    return DocumentRecord(doc_id, doc_id, doc_id, f"hash of {doc_id}", (), "2026-01-31", overrides=overrides)


@pytest.fixture
def acme(records: Settings) -> Iterator[Tenant]:
    for tenant in (OTHER, ACME):
        Registry(records).add(tenant.tenant_id)
        with acting_as(tenant):
            documents.put(*map(record, ("old", "new", "third")))
    with acting_as(ACME):
        yield ACME


def declared(kind: str = "supersedes", from_doc: str = "new", to_doc: str = "old", weight: float = 1.0) -> Edge:
    return Edge(from_doc, kind, to_doc, weight, declared=True)


def test_an_edge_is_seen_from_both_of_its_documents(acme: Tenant) -> None:
    edge = document_edges.put(Edge("new", "related_to", "old", 0.5))
    assert document_edges.of("new") == document_edges.of("old") == document_edges.all() == (edge,)
    assert relations.current().edges == {"new": (edge,), "old": (edge,)}


def test_there_is_one_of_a_kind_in_one_direction(acme: Tenant) -> None:
    document_edges.put(Edge("new", "related_to", "old", 0.5))
    document_edges.put(Edge("new", "related_to", "old", 0.75))
    document_edges.put(Edge("old", "related_to", "new", 0.25))
    document_edges.put(Edge("new", "depends_on", "old"))
    assert [edge.weight for edge in document_edges.of("new")] == [1.0, 0.75, 0.25]


def test_invalid_edges_are_refused(acme: Tenant, subtests: pytest.Subtests) -> None:
    for edge, code in (
        (Edge("new", "related_to", "new"), "edge_to_itself"),
        (Edge("new", "related_to", "old", 1.1), "edge_weight_invalid"),
        (Edge("new", "related_to", "old", -0.1), "edge_weight_invalid"),
        (Edge("new", "related_to", "old", float("nan")), "edge_weight_invalid"),
    ):
        with subtests.test(edge=edge), pytest.raises(Invalid) as refused:
            document_edges.put(edge)
        assert refused.value.code == code
        assert document_edges.all() == ()


@pytest.mark.parametrize("edge", [Edge("new", "related_to", "none"), Edge("none", "related_to", "new")])
def test_an_operator_can_link_only_existing_documents(acme: Tenant, edge: Edge) -> None:
    with pytest.raises(NotFound, match="document_unknown"):
        document_edges.put(edge)


@pytest.mark.parametrize("gone", ["old", "new"])
def test_removing_a_document_removes_its_edges(acme: Tenant, gone: str) -> None:
    document_edges.put(Edge("new", "related_to", "old"))
    document_edges.put(Edge("new", "related_to", "third"))
    documents.remove(gone)
    assert {edge.to_doc for edge in document_edges.all()} == ({"third"} if gone == "old" else set())
    assert not relations.current().edges.get(gone)


def test_a_declared_edge_waits_for_its_other_document(acme: Tenant) -> None:
    relations.declare(["new"], [declared()], [])
    documents.remove("old")
    assert document_edges.of("old") == (declared(),)
    documents.put(record("old"))
    assert relations.current().successors == {"old": "new"}
    documents.remove("new")
    assert document_edges.all() == ()


def test_edges_no_longer_declared_are_removed(acme: Tenant) -> None:
    approach = Rejected("Вернуть наличными", "Запрещено банком", "2026-01-31", "new", declared=True)
    relations.declare(["new"], [declared(), declared("depends_on", to_doc="third")], [approach])
    assert rejected.all() == (approach,)
    relations.declare(["new", "third"], [declared("depends_on", to_doc="third", weight=0.5)], [])
    assert [(edge.kind, edge.weight) for edge in document_edges.all()] == [("depends_on", 0.5)]
    assert rejected.all() == ()


def test_operators_override_declared_edges(acme: Tenant) -> None:
    relations.declare(["new"], [declared()], [Rejected("Вернуть", "так сказано", "2026-01-31", "new", declared=True)])
    document_edges.put(Edge("new", "supersedes", "old", 0.0))
    rejected.put(Rejected("вернуть", "так решено", "2026-02-01", "new"))
    relations.declare(["new"], [declared()], [Rejected("Вернуть", "так сказано", "2026-01-31", "new", declared=True)])
    assert document_edges.all() == (Edge("new", "supersedes", "old", 0.0),)
    assert [approach.reason for approach in rejected.all()] == ["так решено"]
    assert relations.current().successors == {}
    assert relations.current().edges == {}


def test_a_status_that_an_operator_set_stands_over_an_edge(acme: Tenant) -> None:
    relations.declare(["new"], [declared()], [])
    assert relations.current().successors == {"old": "new"}
    documents.put(record("old", status="active"))
    assert relations.current().successors == {}
    documents.put(record("old"))
    assert relations.current().successors == {"old": "new"}


def test_an_edge_that_is_not_there_cannot_be_removed(acme: Tenant) -> None:
    document_edges.put(Edge("new", "related_to", "old"))
    for absent in (("old", "related_to", "new"), ("new", "depends_on", "old")):
        with pytest.raises(NotFound, match="edge_unknown"):
            document_edges.remove(*absent)
    document_edges.remove("new", "related_to", "old")
    assert document_edges.all() == ()


def test_a_rejected_approach_comes_and_goes(acme: Tenant) -> None:
    first = rejected.put(Rejected("Вернуть  наличными", "нельзя"))
    again = rejected.put(Rejected("вернуть наличными", "по-прежнему нельзя", "2026-01-31"))
    assert first.day
    assert first.rejected_id == again.rejected_id
    assert rejected.all() == (again,) == relations.current().rejected
    with pytest.raises(NotFound, match="rejected_unknown"):
        rejected.remove("nothing")
    rejected.remove(again.rejected_id)
    assert rejected.all() == ()


def test_a_rejected_approach_is_gone_with_its_document(acme: Tenant) -> None:
    with pytest.raises(NotFound, match="document_unknown"):
        rejected.put(Rejected("Вернуть", doc_id="none"))
    rejected.put(Rejected("Вернуть", doc_id="new"))
    undocumented = rejected.put(Rejected("Обменять"))
    documents.remove("new")
    assert rejected.all() == (undocumented,)


def test_relations_are_isolated_between_tenants(acme: Tenant) -> None:
    edge, approach = document_edges.put(Edge("new", "supersedes", "old")), rejected.put(Rejected("Вернуть"))
    assert relations.current().successors == {"old": "new"}
    with acting_as(OTHER):
        assert relations.current() == relations.NONE
        assert (document_edges.all(), document_edges.of("old"), rejected.all()) == ((), (), ())
        with pytest.raises(NotFound):
            document_edges.remove("new", "supersedes", "old")
        with pytest.raises(NotFound):
            rejected.remove(approach.rejected_id)
        document_edges.put(Edge("old", "supersedes", "new"))
        rejected.put(Rejected("Обменять"))  # as many changes as Acme's
        assert relations.current().successors == {"new": "old"}
        relations.declare(["new", "old"], [], [])
        documents.remove("new", "old")
    assert (document_edges.all(), rejected.all()) == ((edge,), (approach,))
    assert relations.current().successors == {"old": "new"}


def test_a_tenant_without_relations_costs_no_query(acme: Tenant, records: Settings) -> None:
    queries: list[str] = []
    registry.current()
    event.listen(database.engine(records), "before_cursor_execute", lambda *said: queries.append(said[2]))
    assert relations.current() is relations.NONE
    assert queries == []
    document_edges.put(Edge("new", "supersedes", "old"))
    known = relations.current()
    registry.current()
    queries.clear()
    assert relations.current() is known
    assert queries == []


names = st.sampled_from(["old", "third", "absent"])
ties = st.builds(declared, st.sampled_from(KINDS), st.just("new"), names, st.sampled_from([0.0, 0.5, 1.0]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(ties, max_size=4), min_size=1, max_size=4))
def test_the_last_declaration_is_stored(acme: Tenant, runs: list[list[Edge]]) -> None:
    for declarations in runs:
        relations.declare(["new"], declarations, [])
    last = {(edge.kind, edge.to_doc): edge for edge in runs[-1]}
    assert set(document_edges.all()) == set(last.values())
    assert set(relations.current().edges.get("new", ())) == {edge for edge in last.values() if edge.weight}


def test_a_tenant_has_so_many_relations(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_edges, "MAX_RELATIONS", 3)
    with acting_as(OTHER):
        document_edges.put(Edge("new", "related_to", "old"))
    relations.declare(["new"], [declared()], [])
    rejected.put(Rejected("Вернуть наличными"))
    agreements.put("1", "new", "2", "old")
    new: tuple[Callable[[], object], ...] = (
        lambda: document_edges.put(Edge("new", "related_to", "old")),
        lambda: rejected.put(Rejected("Склеить")),
        lambda: agreements.put("1", "new", "3", "old"),
    )
    for put in new:
        with pytest.raises(Invalid, match="relations_too_many"):
            put()
    document_edges.put(Edge("new", "supersedes", "old", 0.5))
    rejected.put(Rejected("вернуть наличными", "нельзя"))
    agreements.put("2", "old", "1", "new")
    agreements.remove("1", "2")
    document_edges.put(Edge("new", "related_to", "old"))


def test_many_declarations_are_written_in_short_transactions(acme: Tenant, records: Settings) -> None:
    doc_ids = [f"{number}" for number in range(20)]
    ties = [declared(from_doc=doc_id, to_doc=f"to {other}") for doc_id in doc_ids for other in range(100)]
    commits: list[object] = []
    event.listen(database.engine(records), "commit", commits.append)
    relations.declare(doc_ids, ties, [])
    written = len(commits)
    relations.declare(doc_ids, ties, [])
    assert written > 2
    assert len(commits) == written, "nothing has changed"
    assert len(document_edges.all()) == len(ties)

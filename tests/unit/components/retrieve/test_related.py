"""Contradictions of the evidence: located in its sections, the trusted side first, subject to filters."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from haystack import Document

from components.faults import collect_degraded
from components.passages import relevance
from components.retrieve import related
from components.retrieve.in_context import ContextRetriever
from components.retrieve.probe import Probe
from components.retrieve.related import EvidenceContext
from components.turn import Query
from tenants.core.points import Hit
from tenants.knowledge import relations
from tenants.knowledge.contradictions import Contradiction, Side
from tenants.knowledge.relations import Relations
from tests.turns import document

OLD = "Товар можно вернуть за 14 дней."
NEW = "Товар можно вернуть за 30 дней."
PAIR = Contradiction(
    "number", Side("new-2", "new", 0, len(NEW)), Side("old-1", "old", 0, len(OLD)), datetime(2026, 1, 1, tzinfo=UTC)
)
EVIDENCE = [
    document(OLD, "old-1", doc_id="old", updated_at="2024-01-10"),
    document(f"Сохраните чек.\n\n{NEW}", "new-1", doc_id="new", updated_at="2026-02-01", chunk_ids=("new-1", "new-2")),
]


class Shelf:
    """A collection of the chunks that a test names."""

    def __init__(self, chunks: Mapping[str, str]) -> None:
        self.chunks = chunks
        self.fetched: list[Sequence[str]] = []

    def fetch(self, ids: Sequence[str]) -> list[Hit]:
        self.fetched.append(ids)
        found = (document(self.chunks[one], one, doc_id=one[:3]) for one in ids if one in self.chunks)
        return [Hit(one.id, 0.0, {"content": one.content or "", "meta": one.meta}) for one in found]


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The index, and the relations of a tenant with one contradiction."""
    collection = Shelf({"new-2": NEW, "old-1": OLD})
    monkeypatch.setattr(related, "open_collection", lambda: collection)
    monkeypatch.setattr(related, "read_query", Query)
    known = Relations(contradictions={"old": (PAIR,), "new": (PAIR,)})
    monkeypatch.setattr(relations, "current", lambda: known)
    return collection


def context_of(documents: list[Document], filters: dict[str, Any] | None = None) -> dict[str, Any]:
    result: dict[str, Any] = EvidenceContext().run(query="вернуть товар", documents=documents, filters=filters)
    return result


@pytest.mark.usefixtures("shelf")
def test_the_newer_side_is_trusted_and_goes_first() -> None:
    context = context_of(EVIDENCE)
    [conflict] = context["conflicts"]
    assert (conflict.kind, conflict.trusted.text, conflict.other.text) == ("number", NEW, OLD)
    assert conflict.trusted.passage.chunk_id == "new-1"
    assert [one.id for one in context["documents"]] == ["new-1", "old-1"]


@pytest.mark.usefixtures("shelf")
def test_the_side_that_goes_first_is_as_relevant_as_the_other() -> None:
    newer = document(NEW, "new-2", doc_id="new", updated_at="2026-02-01", relevance=0.3)
    older = document(OLD, "old-1", doc_id="old", updated_at="2024-01-10", relevance=0.8)
    aside = document("Доставка два дня.", "new-1", doc_id="new", updated_at="2026-02-01", relevance=0.4)
    for evidence in ([older, aside, newer], [newer, older, aside]):
        found = [(one.id, relevance(one)) for one in context_of(evidence)["documents"]]
        assert found == [("new-2", 0.8), ("old-1", 0.8), ("new-1", 0.4)]


def test_the_more_trusted_side_beats_the_newer_one(shelf: Shelf) -> None:
    accepted = document(OLD, "old-1", doc_id="old", updated_at="2024-01-10", trust="accepted")
    context = context_of([EVIDENCE[1], accepted])
    assert context["conflicts"][0].trusted.text == OLD
    assert [one.id for one in context["documents"]] == ["old-1", "new-1"]


@pytest.mark.usefixtures("shelf")
def test_the_other_side_is_read_from_the_index() -> None:
    context = context_of(EVIDENCE[:1])
    [conflict] = context["conflicts"]
    assert {conflict.trusted.passage.chunk_id, conflict.other.passage.chunk_id} == {"new-2", "old-1"}
    assert context["documents"] == EVIDENCE[:1]


@pytest.mark.usefixtures("shelf")
def test_a_filter_admits_only_the_evidence() -> None:
    filters = {"operator": "AND", "conditions": [{"field": "meta.tags", "operator": "in", "value": ["a"]}]}
    assert context_of(EVIDENCE[:1], filters)["conflicts"] == []
    assert len(context_of(EVIDENCE, filters)["conflicts"]) == 1


def test_a_chunk_that_was_written_anew_ends_the_pair(shelf: Shelf) -> None:
    shelf.chunks = {"old-1": OLD}
    assert context_of(EVIDENCE)["conflicts"] == []


def test_a_failure_leaves_the_turn_degraded(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "fetch", None)
    with collect_degraded() as failed:
        context = context_of(EVIDENCE)
    assert (context["documents"], context["conflicts"], list(failed)) == (EVIDENCE, [], ["related"])


def test_a_successor_goes_before_the_document_that_it_supersedes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "read_query", Query)
    monkeypatch.setattr(relations, "current", lambda: Relations(successors={"old": "new"}))
    assert [one.id for one in context_of(EVIDENCE)["documents"]] == ["new-1", "old-1"]


FOUND = {
    "alone": [document("a", "c1", relevance=0.3), document("b", "c2", relevance=0.1)],
    "with the question before": [document("b", "c2", relevance=0.6)],
}


class Scripted(Probe):
    def ranked(self, text: str, filters: dict[str, Any] | None = None) -> list[Document]:
        chosen = [condition["value"] for condition in (filters or {}).get("conditions", ())]
        return [one for one in FOUND[text] if all(one.meta["doc_id"] in doc_ids for doc_ids in chosen)]


def test_each_section_keeps_its_highest_relevance() -> None:
    found = ContextRetriever(Scripted()).run(readings=list(FOUND))["documents"]
    assert [(one.id, one.meta["relevance"], one.meta["leads"]) for one in found] == [
        ("c2", 0.6, True),
        ("c1", 0.3, True),
    ]


def test_only_the_best_section_of_a_reading_leads() -> None:
    found = ContextRetriever(Scripted()).run(readings=["alone"])["documents"]
    assert [(one.id, one.meta["leads"]) for one in found] == [("c1", True), ("c2", False)]


def test_readings_are_searched_for_within_the_filters() -> None:
    filters = {"operator": "AND", "conditions": [{"field": "meta.doc_id", "operator": "in", "value": ["other"]}]}
    assert ContextRetriever(Scripted()).run(readings=["alone"], filters=filters)["documents"] == []


def test_a_failed_search_offers_nothing() -> None:
    with collect_degraded() as noted:
        assert ContextRetriever(Scripted()).run(readings=["unknown"])["documents"] == []
    assert list(noted) == ["in_context"]

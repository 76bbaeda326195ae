"""Sections for the other readings of a message."""

from haystack import Document

from components.faults import collect_degraded
from components.retrieve.in_context import ContextRetriever
from components.retrieve.probe import Probe
from tests.turns import document

FOUND = {
    "alone": [document("a", "c1", relevance=0.3), document("b", "c2", relevance=0.1)],
    "with the question before": [document("b", "c2", relevance=0.6)],
}


class Scripted(Probe):
    def ranked(self, text: str) -> list[Document]:
        return FOUND[text]


def test_each_section_keeps_its_highest_relevance() -> None:
    found = ContextRetriever(Scripted()).run(readings=list(FOUND))["documents"]
    assert [(one.id, one.meta["relevance"], one.meta["leads"]) for one in found] == [
        ("c2", 0.6, True),
        ("c1", 0.3, True),
    ]


def test_only_the_best_section_of_a_reading_leads() -> None:
    found = ContextRetriever(Scripted()).run(readings=["alone"])["documents"]
    assert [(one.id, one.meta["leads"]) for one in found] == [("c1", True), ("c2", False)]


def test_a_failed_search_offers_nothing() -> None:
    with collect_degraded() as noted:
        assert ContextRetriever(Scripted()).run(readings=["unknown"])["documents"] == []
    assert list(noted) == ["in_context"]

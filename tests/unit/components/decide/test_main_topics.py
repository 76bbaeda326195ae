"""Topics for a customer who has not said what the matter is: the tenant's articles about common reasons to write."""

import pytest
from haystack import Document

from components.decide.main_topics import MainTopics
from components.faults import collect_degraded
from components.retrieve.probe import Probe
from tests.turns import document

FOUND = {
    "where is my order": document("…", "c1", title="Delivery", relevance=0.6),
    "does not start": document("…", "c2", title="Gift cards", relevance=0.1),
    "how to return a product": document("…", "c3", title="Returns", relevance=0.5),
    "payment": document("…", "c4", title="Delivery", relevance=0.5),
    "warranty": document("…", "c5", title="All " * 20, relevance=0.9),
}


def test_topics_are_titles_that_answer_common_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probe, "best", lambda _self, reason: FOUND.get(reason))
    assert MainTopics().find("en") == ("Delivery", "Returns")
    assert MainTopics(limit=1).find("en") == ("Delivery",)


def test_there_are_no_topics_if_the_search_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Probe, _reason: str) -> Document:
        raise OSError

    monkeypatch.setattr(Probe, "best", fail)
    with collect_degraded() as noted:
        assert MainTopics().find("en") == ()
    assert list(noted) == ["suggestions"]

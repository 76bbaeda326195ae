"""Trust decides near ties and never outweighs relevance."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from components.judge.relevance import RelevanceScore
from components.language.encoder_settings import DenseSettings, EncoderSettings
from components.retrieve import reranker
from components.retrieve.reranker import FeatureRanker
from components.turn import DocumentStatus, Passage, Query, Trust
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon
from tests.turns import document


def by_search(query: Query, passages: Sequence[Passage], by_meaning: bool) -> list[RelevanceScore]:
    """Take the search score for the probability that a passage answers."""
    return [RelevanceScore(one.scores["search"], {"cover": 0.5, "by_meaning": by_meaning}) for one in passages]


@pytest.fixture(autouse=True, scope="module")
def judged_by_search() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reranker, "judge", by_search)
        patch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}))
        yield


def ranked(*documents: Document, trust_weight: float = 1.0) -> tuple[Document, ...]:
    return tuple(FeatureRanker(trust_weight).run(query="?", documents=list(documents))["documents"])


def scores(one: Document) -> Mapping[str, float]:
    found: Mapping[str, float] = one.meta["scores"]
    return found


def reranked(
    chunk_id: str, score: float, trust: Trust = "auto", status: DocumentStatus = "active", priority: int = 0
) -> Document:
    return document("Текст", chunk_id, relevance=score, trust=trust, status=status, priority=priority)


@pytest.mark.parametrize(
    ("status", "lost"), [("active", 0.0), ("superseded", 0.40), ("deprecated", 0.40), ("archived", 0.60)]
)
def test_outdated_documents_lose_the_specified_penalty(status: DocumentStatus, lost: float) -> None:
    (one,) = ranked(reranked("a", 0.9, status=status))
    assert one.score == pytest.approx(0.9 - lost)
    assert scores(one)["trust"] == pytest.approx(-lost)


@pytest.mark.parametrize("priority", [0, 1, 50, 100])
def test_each_priority_point_adds_a_thousandth(priority: int) -> None:
    (one,) = ranked(reranked("a", 0.5, priority=priority))
    assert one.score == pytest.approx(0.5 + 0.001 * priority)


def test_trust_levels_rank_accepted_auto_raw() -> None:
    order = ranked(reranked("raw", 0.5, "raw"), reranked("auto", 0.5, "auto"), reranked("accepted", 0.5, "accepted"))
    assert [one.id for one in order] == ["accepted", "auto", "raw"]


trusts = st.sampled_from(get_args(Trust))
priorities = st.integers(0, 100)


@given(st.floats(0, 0.8), trusts, priorities, trusts, priorities)
def test_trust_never_outweighs_a_clear_difference_in_relevance(
    score: float, one: Trust, one_priority: int, two: Trust, two_priority: int
) -> None:
    better, worse = (
        reranked("a", score + 0.2, one, priority=one_priority),
        reranked("b", score, two, priority=two_priority),
    )
    assert ranked(worse, better)[0].id == "a"


outdated: st.SearchStrategy[DocumentStatus] = st.sampled_from(["superseded", "deprecated", "archived"])


@given(st.floats(0.1, 1), st.floats(0, 0.1), outdated, trusts, priorities, trusts, priorities)
def test_a_successor_outranks_its_predecessor_in_a_near_tie(
    score: float, worse: float, status: DocumentStatus, one: Trust, high: int, two: Trust, low: int
) -> None:
    old = reranked("old", score, one, status, high)
    new = reranked("new", score - worse, two, "active", low)
    weight = FeatureRanker().trust_weight
    assert [one.id for one in ranked(old, new, trust_weight=weight)] == ["new", "old"]


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [
        ((), ["a", "c", "d", "b"]),
        ((0.8, 0.7, 0.6, 0.9), ["b", "d", "a", "c"]),
        ((0.9, 0.8, 0.7, 0.6), ["d", "a", "c", "b"]),
    ],
)
def test_with_search_orders_by_the_sum_of_all_ranks(
    cosines: Sequence[float], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = {"a": 0.9, "b": 0.5, "c": 0.4, "d": 0.1}
    monkeypatch.setattr(reranker, "_is_encoder_fitted", lambda: True)
    monkeypatch.setattr(
        reranker,
        "judge",
        lambda query, passages, by_meaning: [RelevanceScore(judged[p.chunk_id], {}) for p in passages],
    )
    found = [
        document("Текст", one, scores={"search": score, **({"cosine": cosines[place]} if cosines else {})})
        for place, (one, score) in enumerate(zip("dcab", (1, 0.8, 0.6, 0.2), strict=True))
    ]
    orders = {
        with_search: [
            one.id for one in FeatureRanker(with_search=with_search).run(query="?", documents=found)["documents"]
        ]
        for with_search in (False, True)
    }
    assert orders == {False: ["a", "b", "c", "d"], True: expected}


class Shelf:
    """A collection that was encoded by an encoder of this name."""

    def __init__(self, space: str) -> None:
        dense = DenseSettings(space=space, dimensions=2, embedder={}) if space else None
        self.encoder = EncoderSettings(dense=dense).json_form


@pytest.mark.parametrize(
    ("space", "by_meaning"),
    [("opora/e5-small 'query: '", True), ("intfloat/multilingual-e5-small", True), ("bge-m3", False), ("", False)],
)
def test_only_cosines_that_the_judge_was_fitted_for_count(
    space: str, by_meaning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker, "open_collection", lambda: Shelf(space))
    (one,) = ranked(document("Текст", scores={"search": 0.5, "cosine": 0.5}))
    assert scores(one)["by_meaning"] == by_meaning

"""Searching: fusion that shows its parts, filters that never widen, evidence that only grows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from components.embed.dense import EmbeddingFailed
from components.faults import collect_degraded
from components.language.encoder import encode_query
from components.language.encoder_settings import DenseSettings, EncoderSettings
from components.passages import to_passage
from components.retrieve import retriever
from components.retrieve.retriever import DENSE_SHARE, TenantRetriever, haystack_filters, to_conditions
from components.turn import Filters, Passage
from tenants.core.points import Conditions, Dense, Hit, Vector
from tenants.index import DENSE, SPARSE
from tenants.knowledge import relations


def payload(chunk_id: str) -> dict[str, object]:
    return {"content": "Текст", "meta": {"chunk_id": chunk_id, "doc_id": "d", "sentences": [[0, 5]]}}


STORED: Mapping[str, Dense] = {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (-1.0, 0.0), "d": (0.6, 0.8), "e": (0.0, -1.0)}
"""The dense vectors of points."""


class Shelf:
    """A collection with fixed hits per vector that records its queries."""

    encoder = ""
    version = None

    def __init__(self, hits: Mapping[str, Mapping[str, float]]) -> None:
        self.hits = hits
        self.asked: list[tuple[frozenset[str], int, Conditions | None]] = []

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,
        conditions: Conditions | None = None,
        payloads: bool = True,
    ) -> dict[str, list[Hit]]:
        self.asked.append((frozenset(queries), limit, conditions))
        retrieved = {name: sorted(self.hits.get(name, {}).items(), key=lambda hit: -hit[1])[:limit] for name in queries}
        return {name: [self._hit(*hit, filled=payloads) for hit in hits] for name, hits in retrieved.items()}

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        return [self._hit(one, 0.0, filled=True, dense=STORED[one] if dense else None) for one in ids]

    def _hit(self, point: str, score: float, *, filled: bool, dense: Dense | None = None) -> Hit:
        return Hit(point, score, payload(point) if filled else {}, dense)  # type: ignore[arg-type]


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    fake_shelf = Shelf({SPARSE: {"a": 8.0, "b": 4.0, "c": 1.0}})
    monkeypatch.setattr(retriever, "open_collection", lambda: fake_shelf)
    monkeypatch.setattr(relations, "current", lambda: relations.NONE)
    return fake_shelf


def retrieved(query: str, candidates: int = 40, top_k: int = 20, **inputs: Any) -> dict[str, Passage]:  # noqa: ANN401
    found = TenantRetriever(candidates=candidates, top_k=top_k).run(query=query, **inputs)["documents"]
    return {one.id: to_passage(one) for one in found}


def test_the_best_hit_scores_1_and_the_others_a_share_of_it(shelf: Shelf) -> None:
    scores = {chunk_id: one.score for chunk_id, one in retrieved("фильтр насоса").items()}
    assert scores == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.125})
    assert list(scores) == ["a", "b", "c"]


def test_the_parts_of_a_score_are_visible_and_add_up(dense_shelf: Shelf) -> None:
    for one in retrieved("фильтр насоса").values():
        dense, sparse = (one.scores.get(name, 0.0) for name in (DENSE, SPARSE))
        assert one.score == pytest.approx(DENSE_SHARE * dense + (1 - DENSE_SHARE) * sparse)


def test_an_empty_question_finds_nothing(shelf: Shelf) -> None:
    assert retrieved("") == {}
    assert shelf.asked == []


def test_hits_of_a_variant_weigh_less_than_those_of_the_query(shelf: Shelf) -> None:
    assert retrieved("и", variants=["фильтр"])["a"].score < retrieved("фильтр")["a"].score


def test_variants_and_the_queries_of_a_later_pass_are_searched_too(shelf: Shelf) -> None:
    retrieved("фильтр", variants=["насос", "шланг"], queries=["кран"])
    assert len(shelf.asked) == 4


def test_the_number_of_results_is_limited_by_top_k(shelf: Shelf) -> None:
    assert list(retrieved("фильтр", top_k=1)) == ["a"]
    retrieved("фильтр", candidates=7)
    assert {limit for _, limit, _ in shelf.asked} == {40, 7}


def test_a_question_is_encoded_as_the_collection_it_searches(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[EncoderSettings] = []

    def encoding(text: str, settings: EncoderSettings) -> dict[int, float]:
        used.append(settings)
        return encode_query(text, settings)

    monkeypatch.setattr(retriever, "encode_query", encoding)
    shelf.encoder = EncoderSettings(gram_sizes=(2,)).json_form
    TenantRetriever().run(query="фильтр")
    assert used == [EncoderSettings(gram_sizes=(2,))]


# Dense vectors.


@pytest.fixture
def dense_shelf(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The shelf with dense vectors, and a fake embedder."""
    shelf.hits = {**shelf.hits, DENSE: {"d": 0.9, "a": 0.85, "c": 0.8}}
    shelf.encoder = EncoderSettings(dense=DenseSettings(space="tiny", dimensions=2, embedder={})).json_form
    monkeypatch.setattr(retriever, "embed_question", lambda text, settings, **_: (0.6, 0.8))
    return shelf


def test_the_worst_dense_hit_is_0_and_the_best_1(dense_shelf: Shelf) -> None:
    passages = retrieved("фильтр насоса")
    parts = {chunk_id: one.scores.get(DENSE) for chunk_id, one in passages.items()}
    assert parts == {"d": 1.0, "a": pytest.approx(0.5), "c": 0.0, "b": None}
    assert passages["d"].score == DENSE_SHARE
    assert passages["a"].score == pytest.approx(1 - 0.5 * DENSE_SHARE)


def test_every_passage_has_its_cosine_with_the_question(dense_shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"a": 0.6, "b": 0.8, "c": -0.6, "d": 1.0}
    cosines = {chunk_id: one.scores["cosine"] for chunk_id, one in retrieved("фильтр насоса").items()}
    assert cosines == pytest.approx(expected)
    # Of any length, and whatever other wording found the passage.
    monkeypatch.setattr(
        retriever,
        "embed_question",
        lambda text, settings, **_: (3.0, 4.0) if text == "фильтр насоса" else (0.0, 5.0),
    )
    rephrased = retrieved("фильтр насоса", variants=["шланг"])
    cosines = {chunk_id: one.scores["cosine"] for chunk_id, one in rephrased.items()}
    assert cosines == pytest.approx(expected)


def test_the_nearest_passage_is_kept_whatever_its_words(dense_shelf: Shelf) -> None:
    dense_shelf.hits = {SPARSE: {"a": 9.0, "b": 8.9, "c": 8.8, "e": 8.7}, DENSE: {"d": 0.9, "a": 0.5}}
    assert list(retrieved("фильтр насоса", top_k=4)) == ["a", "b", "c", "d"]


def test_a_question_without_a_known_word_is_still_searched_by_its_vector(dense_shelf: Shelf) -> None:
    assert list(retrieved("и")) == ["d", "a", "c"]
    assert [asked_turn for asked_turn, _, _ in dense_shelf.asked] == [{DENSE}]


def test_keyword_search_is_the_fallback_when_embedding_fails(
    dense_shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(text: str, settings: DenseSettings, **_: float) -> Dense:
        raise EmbeddingFailed

    dense_shelf.encoder, former = "", dense_shelf.encoder
    without = retrieved("фильтр насоса")
    dense_shelf.encoder = former
    monkeypatch.setattr(retriever, "embed_question", failing)
    with collect_degraded() as noted:
        assert retrieved("фильтр насоса") == without
    assert list(noted) == ["embedder"]


# Filters.


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("project_keys", "meta.project_key"),
        ("tags", "meta.tags"),
        ("source_types", "meta.source_type"),
        ("evidence_tiers", "meta.evidence_tier"),
        ("statuses", "meta.status"),
        ("doc_ids", "meta.doc_id"),
    ],
)
@pytest.mark.parametrize("values", [(), ("x",), ("x", "y")])
def test_a_filter_is_a_condition_and_an_empty_one_matches_nothing(
    shelf: Shelf, field: str, path: str, values: tuple[str, ...]
) -> None:
    filters = replace(Filters(), **{field: values})  # type: ignore[arg-type]
    assert to_conditions(haystack_filters(filters)) == Conditions({path: values})
    retrieved("фильтр", filters=haystack_filters(filters))
    assert [conditions for _, _, conditions in shelf.asked] == [Conditions({path: values})]


@pytest.mark.parametrize("ends", [("2026-01-01", None), (None, "2026-02-01"), ("2026-01-01", "2026-02-01")])
def test_dates_filter_by_range(ends: tuple[str | None, str | None]) -> None:
    filters = haystack_filters(Filters(date_from=ends[0], date_to=ends[1]))
    assert to_conditions(filters) == Conditions(between={"meta.updated_at": ends})


@pytest.mark.parametrize(
    "filters",
    [
        {"operator": "OR", "conditions": []},
        {"operator": "AND", "conditions": [{"field": "meta.tags", "operator": "!=", "value": "x"}]},
    ],
)
def test_a_filter_that_cannot_be_kept_is_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="filters"):
        to_conditions(filters)


def test_filters_are_combined() -> None:
    conditions = to_conditions(haystack_filters(Filters(tags=(), doc_ids=("d",), date_to="2026-02-01")))
    assert conditions == Conditions({"meta.tags": (), "meta.doc_id": ("d",)}, {"meta.updated_at": (None, "2026-02-01")})

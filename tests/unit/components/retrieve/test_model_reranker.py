"""Reranking by a model: its real loading path, calibrated scores, trust beside them, and what happens when it fails."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, nan
from pathlib import Path

import pytest
from components.judge.calibration import log_odds
from components.judge.local import LocalJudge
from components.judge.ranked import SCORE, RankedJudge
from components.retrieve.model_reranker import ModelReranker
from haystack import Document, Pipeline, component
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.rankers import LLMRanker
from haystack.utils import Secret
from hypothesis import given
from hypothesis import strategies as st

from components.judge import calibration
from components.retrieve.cross_encoder import FastCrossEncoder
from components.retrieve.reranker import FeatureReranker
from components.turn import Passage, Turn
from tenants.context import Tenant, acting_as
from tests.encoders import CROSS_ENCODER, FILE, cross_encoder, lay_out
from tests.turns import passage, query, searched


@pytest.fixture(autouse=True)
def _acme() -> Iterator[None]:
    with acting_as(Tenant("acme", "anna")):
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> FastCrossEncoder:
    folder = tmp_path_factory.mktemp("models")
    lay_out(folder, CROSS_ENCODER, cross_encoder())
    return FastCrossEncoder(CROSS_ENCODER, file=FILE, cache_dir=str(folder), threads=1)


@component
class Scores:
    """A ranker that gives the scores it is told, by document id, and counts what it read."""

    def __init__(self, scores: Mapping[str, float | None] | None) -> None:
        self.scores = scores
        self.read: list[str] = []

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        self.read.extend(document.id for document in documents)
        if self.scores is None:
            raise ConnectionError(query)
        by_id = {document.id: document for document in documents}
        return {
            "documents": [replace(by_id[name], score=score) for name, score in self.scores.items() if name in by_id]
        }


def passages_scored(*scores: float) -> list[Passage]:
    return [replace(passage("Текст", f"c{number}"), score=score) for number, score in enumerate(scores)]


def order(turn: Turn) -> list[str]:
    return [one.chunk_id for one in turn.evidence.passages]


def test_a_passage_that_answers_in_other_words_ranks_first(tiny: FastCrossEncoder) -> None:
    given_turn = searched(
        "Какая гарантия на насос?",
        replace(passage("Про пароль.", "wrong"), score=0.8),
        replace(passage("Поручительство на помпу: помпа служит год, поручительство два.", "right"), score=0.3),
    )
    turn = ModelReranker(tiny).run(given_turn)["turn"]
    assert order(turn) == ["right", "wrong"]
    right, wrong = turn.evidence.passages
    assert right.scores["reranker-log-odds"] > 0 > wrong.scores["reranker-log-odds"]
    for one in (right, wrong):
        assert one.scores[SCORE] == pytest.approx(1 / (1 + exp(-one.scores["reranker-log-odds"])))
        assert one.score == pytest.approx(one.scores[SCORE] + one.scores["trust"])


def test_the_ranker_reads_passages_with_title_and_heading(tiny: FastCrossEncoder) -> None:
    titled = passage("Обращайтесь к нам.", "titled", title="Гарантия", heading="Насос")
    turn = ModelReranker(tiny).run(searched("гарантия насос", titled))["turn"]
    assert turn.evidence.passages[0].scores["reranker-log-odds"] == pytest.approx(0.0, abs=0.1)


def test_a_passage_is_scored_once_over_all_passes() -> None:
    ranker = Scores({"c0": 0.1, "c1": 2.0})
    reranker = ModelReranker(ranker)
    first = reranker.run(searched("?", *passages_scored(0.9)))["turn"]
    evidence = replace(first.evidence, passages=(*first.evidence.passages, passages_scored(0.9, 0.5)[1]))
    second = reranker.run(replace(first, evidence=evidence))["turn"]
    assert ranker.read == ["c0", "c1"]
    assert order(second) == ["c1", "c0"]
    assert reranker.run(second)["turn"] == second
    assert ranker.read == ["c0", "c1"]


def test_scores_are_cached_by_tenant_question_and_passage() -> None:
    ranker = Scores({"c0": 1.0, "c1": 2.0})
    reranker = ModelReranker(ranker)
    first, again = (reranker.run(searched("q", *passages_scored(0.9, 0.5)))["turn"] for _ in range(2))
    assert (order(first), ranker.read) == (order(again), ["c0", "c1"])
    reranker.run(searched("another", *passages_scored(0.9, 0.5)))
    with acting_as(Tenant("globex", "boris")):
        reranker.run(searched("q", *passages_scored(0.9, 0.5)))
    reranker.run(searched("q", *(replace(one, text="Иначе") for one in passages_scored(0.9, 0.5))))
    assert ranker.read == ["c0", "c1"] * 4


def test_passages_beyond_the_depth_follow_in_search_order() -> None:
    ranker = Scores(dict.fromkeys(["c0", "c1", "c2", "c3"], -20.0))
    turn = ModelReranker(ranker, depth=2).run(searched("?", *passages_scored(0.9, 0.6, 0.8, 0.7)))["turn"]
    assert ranker.read == ["c0", "c2"]
    assert order(turn) == ["c0", "c2", "c3", "c1"]
    assert [one.score for one in turn.evidence.passages] == pytest.approx([0.0] * 4, abs=1e-6)


def test_trust_is_added_to_the_model_score() -> None:
    old, new = passages_scored(0.9, 0.9)
    turn = ModelReranker(Scores({"c0": 1.0, "c1": 0.9})).run(searched("?", replace(old, status="archived"), new))[
        "turn"
    ]
    assert order(turn) == ["c1", "c0"]


def test_a_probability_scale_is_used_unchanged() -> None:
    turn = ModelReranker(Scores({"c0": 0.75}), scale="probability").run(searched("?", *passages_scored(0.9)))["turn"]
    (one,) = turn.evidence.passages
    assert one.scores[SCORE] == pytest.approx(0.75)
    assert one.scores["reranker-log-odds"] == pytest.approx(log_odds(0.75))


def test_each_language_has_its_own_calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    same = {"slope": 1, "intercept": 0}
    lines = {
        language: {"relevance": {"slope": 2, "intercept": intercept}, "confidence": same}
        for language, intercept in (("ru", -1), ("en", 1))
    }
    monkeypatch.setattr(calibration, "FILE", tmp_path / "calibration.json")
    calibration.FILE.write_text(json.dumps({"engines": {"tiny": lines}}))
    russian, english = (
        replace(one, lang=lang) for one, lang in zip(passages_scored(0.9, 0.9), ("ru", "en"), strict=True)
    )
    reranker = ModelReranker(Scores({"c0": 1.0, "c1": 1.0}), calibration="tiny")
    scores = {
        one.chunk_id: one.scores[SCORE]
        for one in reranker.run(searched("?", russian, english))["turn"].evidence.passages
    }
    assert scores == pytest.approx({"c0": 1 / (1 + exp(-1)), "c1": 1 / (1 + exp(-3))})


def test_an_unknown_calibration_is_refused_at_construction() -> None:
    with pytest.raises(KeyError):
        ModelReranker(Scores({}), calibration="nobody's")


@pytest.mark.parametrize("scores", [None, {"c0": None}, {"c0": nan}, {"c0": inf}])
def test_feature_ranking_is_the_fallback(
    scores: Mapping[str, float | None] | None, caplog: pytest.LogCaptureFixture
) -> None:
    given_turn = searched("секрет", *passages_scored(0.4, 0.9))
    with caplog.at_level(logging.DEBUG):
        turn = ModelReranker(Scores(scores)).run(given_turn)["turn"]
    expected = FeatureReranker().run(given_turn)["turn"]
    assert (turn.evidence, turn.degraded) == (expected.evidence, ("reranker",))
    assert "секрет" not in caplog.text


def test_a_repeatedly_failing_ranker_is_skipped_for_a_while() -> None:
    now = 0.0
    ranker = Scores(None)
    reranker = ModelReranker(ranker, failures=4, pause=30)
    reranker._upstream.breaker.clock = lambda: now
    for _ in range(7):
        assert reranker.run(searched("?", *passages_scored(0.9)))["turn"].degraded == ("reranker",)
    assert len(ranker.read) == 4
    now, ranker.scores = 31, {"c0": 1.0}
    assert reranker.run(searched("?", *passages_scored(0.9)))["turn"].degraded == ()


def test_a_missing_model_fails_no_turn(tmp_path: Path) -> None:
    pipeline = Pipeline()
    pipeline.add_component("rerank", ModelReranker(FastCrossEncoder("nobody/has-it", FILE, str(tmp_path))))
    given_turn = searched("?", *passages_scored(0.4, 0.9))
    pipeline.warm_up()
    turn = pipeline.run({"turn": given_turn})["rerank"]["turn"]
    assert (order(turn), turn.degraded) == (["c1", "c0"], ("reranker",))


def test_without_passages_no_ranker_is_called() -> None:
    ranker = Scores(None)
    assert ModelReranker(ranker).run(searched("?"))["turn"].degraded == ()
    assert ranker.read == []


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-30, 30)), min_size=1, max_size=6))
def test_no_passage_is_lost_and_score_parts_add_up(given_scores: Sequence[tuple[float, float]]) -> None:
    passages = passages_scored(*(search for search, _ in given_scores))
    ranker = Scores({f"c{number}": logit for number, (_, logit) in enumerate(given_scores)})
    turn = ModelReranker(ranker).run(searched("?", *passages))["turn"]
    assert sorted(order(turn)) == sorted(one.chunk_id for one in passages)
    for one in turn.evidence.passages:
        assert 0 <= one.scores[SCORE] <= 1
        assert one.score == pytest.approx(one.scores[SCORE] + one.scores["trust"])
    scores = [one.score for one in turn.evidence.passages]
    assert scores == sorted(scores, reverse=True)


def test_a_ranker_without_scores_changes_order_only() -> None:
    given_turn = searched("?", *passages_scored(0.9, 0.8, 0.7, 0.6))
    reranker = ModelReranker(Scores({"c2": None, "c0": None}), scale="order", depth=3)
    turn = reranker.run(given_turn)["turn"]
    assert order(turn) == ["c2", "c0", "c1", "c3"]
    by_evidence = FeatureReranker().run(given_turn)["turn"].evidence.passages
    assert [one.score for one in turn.evidence.passages] == [one.score for one in by_evidence]
    assert all(SCORE not in one.scores for one in turn.evidence.passages)
    assert ModelReranker(Scores(None), scale="order").run(given_turn)["turn"].degraded == ("reranker",)


def llm_ranker() -> LLMRanker:
    return LLMRanker(chat_generator=OpenAIChatGenerator(api_key=Secret.from_env_var("NO_KEY", strict=False)))


@pytest.mark.parametrize("ranker", [FastCrossEncoder("any", "onnx/model.onnx"), llm_ranker()])
def test_round_trip(ranker: FastCrossEncoder | LLMRanker) -> None:
    pipeline = Pipeline()
    pipeline.add_component("rerank", ModelReranker(ranker, "probability", "", 10, 0.25))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()


# The judge that takes the model's word.


def test_relevance_comes_from_the_model_where_it_scored_else_from_the_local_judge() -> None:
    read = replace(passage("Совсем о другом.", "read"), scores={SCORE: 0.9})
    unread = passage("Насос шумит.", "unread")
    judged = RankedJudge().relevance(query("Почему шумит насос?"), [read, unread])
    local = LocalJudge().relevance(query("Почему шумит насос?"), [read, unread])
    assert judged == {"read": 0.9, "unread": local["unread"]}
    assert local["read"] < 0.2


def test_a_code_is_exact_whatever_the_model_says() -> None:
    other = replace(passage("Ошибка E25: нет воды.", "other"), scores={SCORE: 0.99})
    same = replace(passage("Ошибка E20: нет слива.", "same"), scores={SCORE: 0.6})
    assert RankedJudge().relevance(query("Что значит E20?"), [other, same]) == {"other": 0.0, "same": 0.6}


@pytest.mark.parametrize("fault", [None, {"c1": None}, {"c1": nan}])
def test_a_ranker_failing_on_a_later_pass_keeps_earlier_scores(fault: Mapping[str, float | None] | None) -> None:
    ranker = Scores({"c0": 3.0})
    reranker = ModelReranker(ranker)
    first = reranker.run(searched("?", *passages_scored(0.2)))["turn"]
    ranker.scores = fault
    evidence = replace(first.evidence, passages=(*first.evidence.passages, passages_scored(0.2, 0.9)[1]))
    second = reranker.run(replace(first, evidence=evidence))["turn"]
    assert second.degraded == ("reranker",)
    assert set(order(second)) == {"c0", "c1"}
    by_id = {one.chunk_id: one for one in second.evidence.passages}
    assert by_id["c0"].score == first.evidence.passages[0].score
    assert SCORE not in by_id["c1"].scores

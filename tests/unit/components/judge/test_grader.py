"""Grading passages: YES and NO, the best hit's privilege, and a judge that fails."""

from dataclasses import replace

import pytest
from components.judge.local import LocalJudge
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge.grader import DocGrader
from components.turn import Evidence, Turn
from tests.turns import BrokenJudge, FixedJudge, passage, searched

FOUND = [passage(f"Текст {number}.", f"c{number}") for number in range(6)]
RANKED = tuple(replace(one, score=1 - number / 10) for number, one in enumerate(FOUND))


def graded(judge: FixedJudge, given_turn: Turn | None = None, **settings: float) -> Evidence:
    grader = DocGrader(judge, depth=4, threshold=settings.get("threshold", 0.5))
    return grader.run(given_turn or searched("?", *RANKED))["turn"].evidence


def test_passages_graded_yes_are_accepted() -> None:
    evidence = graded(FixedJudge({"c0": 0.6, "c1": 0.1, "c2": 0.9}))
    assert set(evidence.relevant_ids) == {"c0", "c2"}
    assert evidence.relevance == 0.9
    assert evidence.retrieved == len(FOUND)


def test_all_passages_graded_no_is_no_evidence() -> None:
    evidence = graded(FixedJudge())
    assert (evidence.relevant_ids, evidence.relevance, evidence.relevant_passages()) == ((), 0.0, ())


def test_the_best_hit_is_accepted_when_another_passage_is() -> None:
    assert set(graded(FixedJudge({"c2": 0.9})).relevant_ids) == {"c0", "c2"}


def test_only_the_best_passages_are_graded_and_each_once() -> None:
    judge = FixedJudge({"c1": 0.9})
    first = graded(judge)
    assert judge.asked == ["c0", "c1", "c2", "c3"]
    better = replace(passage("Новое.", "c9"), score=2.0)
    again = replace(searched("?"), evidence=replace(first, passages=(better, *first.passages)))
    graded(judge, again)
    assert judge.asked == ["c0", "c1", "c2", "c3", "c9"]


def test_a_failing_judge_accepts_all_passages_and_degrades_the_turn() -> None:
    after = DocGrader(BrokenJudge("relevance"), depth=4).run(searched("?", *RANKED))["turn"]
    assert after.evidence.relevant_ids == tuple(after.evidence.rank_scores) == ("c0", "c1", "c2", "c3")
    assert after.degraded == ("grader",)


def test_a_passage_omitted_by_the_judge_is_graded_no() -> None:
    class Forgetful(FixedJudge):
        def relevance(self, query: object, passages: object) -> dict[str, float]:
            return {"c1": 0.9}

    assert set(graded(Forgetful()).relevant_ids) == {"c0", "c1"}


def test_the_rank_combines_search_score_and_judgement() -> None:
    grader = DocGrader(FixedJudge({"c0": 0.5, "c1": 1.0}), depth=2, search_share=0.75)
    results = replace(passage("Один.", "c0"), score=0.8), replace(passage("Два.", "c1"), score=0.4)
    evidence = grader.run(searched("?", *results))["turn"].evidence
    assert evidence.rank_scores == pytest.approx({"c0": 0.725, "c1": 0.55})
    assert evidence.relevant_ids == ("c0", "c1")


@given(st.dictionaries(st.sampled_from([one.chunk_id for one in FOUND]), st.floats(0, 1)), st.floats(0.01, 1))
def test_accepted_passages_were_retrieved_and_relevance_is_their_maximum(
    judged: dict[str, float], threshold: float
) -> None:
    evidence = graded(FixedJudge(judged), threshold=threshold)
    assert len(set(evidence.relevant_ids)) == len(evidence.relevant_ids)
    assert set(evidence.relevant_ids) <= {one.chunk_id for one in FOUND}
    assert evidence.relevance == max((judged.get(one, 0.0) for one in evidence.relevant_ids), default=0.0)
    assert evidence.relevance >= threshold or not evidence.relevant_ids


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("grade", DocGrader(LocalJudge(), depth=5, threshold=0.3, search_share=0.4))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    parameters = again.to_dict()["components"]["grade"]["init_parameters"]
    assert (parameters["depth"], parameters["threshold"], parameters["search_share"]) == (5, 0.3, 0.4)

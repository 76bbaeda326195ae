"""Enough evidence, another pass, or a refusal: exactly one of them."""

from dataclasses import replace
from typing import get_args

import pytest
from components.judge.local import LocalJudge
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge.evaluator import RetrievalEvaluator
from components.turn import Quality, Turn
from tests.turns import BrokenJudge, FixedJudge, passage, turn

FOUND = passage("Код E20: вода не сливается.")


def routed(given_turn: Turn, judge: FixedJudge | None = None) -> tuple[str, Turn]:
    evaluator = RetrievalEvaluator(judge or FixedJudge(), threshold=0.6, worth_retrying=0.3)
    ((socket, after),) = evaluator.run(given_turn).items()
    return socket, after


@pytest.mark.parametrize(
    ("relevance", "socket"), [(0.9, "enough"), (0.6, "enough"), (0.59, "retry"), (0.3, "retry"), (0.29, "refuse")]
)
def test_relevance_decides(relevance: float, socket: str) -> None:
    assert routed(turn("вода", FOUND, relevance=relevance))[0] == socket


def test_without_accepted_passages_the_turn_is_refused() -> None:
    bare = turn("вода", FOUND)
    socket, after = routed(replace(bare, evidence=replace(bare.evidence, relevant_ids=())))
    assert (socket, after.evidence.adequacy, after.verdict.reasons) == ("refuse", 0.0, ("no_evidence",))


def test_without_new_evidence_there_is_no_retry() -> None:
    weak = turn("вода", FOUND, relevance=0.5)
    assert routed(replace(weak, evidence=replace(weak.evidence, has_new=False)))[0] == "refuse"


def test_an_unknown_code_is_refused_despite_high_relevance() -> None:
    evaluator = RetrievalEvaluator(LocalJudge())
    ((socket, after),) = evaluator.run(turn("вода не сливается E21", FOUND, relevance=0.99)).items()
    assert (socket, after.verdict.reasons, after.evidence.adequacy) == ("refuse", ("code_not_found",), 0.0)
    assert after.evidence.uncovered[0] == "E21"


def test_one_code_of_two_is_enough() -> None:
    assert "enough" in RetrievalEvaluator(LocalJudge()).run(turn("E20 и E21", FOUND, relevance=0.99))


def test_a_failing_judge_leaves_the_decision_to_relevance_and_degrades_the_turn() -> None:
    socket, after = routed(turn("вода", FOUND), BrokenJudge("uncovered"))
    assert (socket, after.degraded, after.evidence.uncovered) == ("enough", ("retrieval_evaluator",), ())


@given(st.floats(0, 1), st.sampled_from(get_args(Quality)), st.integers(1, 5), st.booleans())
def test_exactly_one_route_and_never_beyond_the_budget(
    relevance: float, quality: Quality, passes: int, grew: bool
) -> None:
    weak = replace(turn("вода", FOUND, relevance=relevance), quality=quality, passes=passes)
    socket, after = routed(replace(weak, evidence=replace(weak.evidence, has_new=grew)))
    (gate,) = after.verdict.gates
    assert gate.passed == (socket == "enough") == (relevance >= gate.threshold)
    assert (after.verdict.route == "retry") == (socket == "retry")
    if socket == "retry":
        assert passes < weak.max_passes
        assert grew


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("evaluate", RetrievalEvaluator(LocalJudge(), threshold=0.5, worth_retrying=0.2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    parameters = again.to_dict()["components"]["evaluate"]["init_parameters"]
    assert (parameters["threshold"], parameters["worth_retrying"]) == (0.5, 0.2)

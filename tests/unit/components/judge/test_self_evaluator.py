"""Scoring drafts and keeping the best of all passes."""

from dataclasses import replace

from components.judge.local import LocalJudge
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge.self_evaluator import SelfEvaluator, better_draft
from components.turn import Draft, SelfEvaluation, Turn
from tests.turns import BrokenJudge, FixedJudge, turn

DRAFT = Draft("Текст. [1]", (), (), factuality=100.0)


def test_the_draft_gets_its_scores() -> None:
    judge = FixedJudge(evaluation=SelfEvaluation(71, "partially", 0.6, ("E21",)))
    after = SelfEvaluator(judge).run(replace(turn("?", relevance=0.7), draft=DRAFT))["turn"]
    assert (
        after.draft
        == after.best
        == replace(DRAFT, quality=71, answerability="partially", confidence=0.6, missing=("E21",), relevance=0.7)
    )


def test_a_failing_judge_leaves_scores_at_zero_and_degrades_the_turn() -> None:
    after = SelfEvaluator(BrokenJudge("evaluate")).run(replace(turn("?"), draft=DRAFT))["turn"]
    assert after.draft is not None
    assert (after.draft.quality, after.draft.answerability, after.draft.confidence) == (0, "unknown", 0.0)
    assert after.degraded == ("self_evaluator",)


def test_a_turn_without_a_draft_is_unchanged() -> None:
    assert SelfEvaluator(FixedJudge()).run(Turn("t", "?")) == {"turn": Turn("t", "?")}


drafts = st.builds(
    Draft,
    text=st.text(max_size=3),
    claims=st.just(()),
    citations=st.just(()),
    factuality=st.sampled_from([0.0, 50.0, 100.0]),
    quality=st.integers(0, 3),
    relevance=st.sampled_from([0.1, 0.9]),
)


@given(st.lists(drafts, min_size=1, max_size=6))
def test_the_first_of_equally_good_drafts_is_the_best(candidates: list[Draft]) -> None:
    best: Draft | None = None
    for draft in candidates:
        best = better_draft(best, draft)
    assert best is max(candidates, key=lambda one: (one.factuality, one.quality, one.relevance))


def test_facts_count_before_quality() -> None:
    honest, eloquent = replace(DRAFT, quality=10), replace(DRAFT, factuality=50.0, quality=99)
    assert better_draft(honest, eloquent) is honest
    assert better_draft(eloquent, honest) is honest


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("evaluate", SelfEvaluator(LocalJudge(fully=0.7)))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()

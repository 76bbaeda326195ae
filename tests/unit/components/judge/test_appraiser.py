"""A model's appraisal of the evidence: answer, another pass or a refusal, and what stands when it fails."""

from dataclasses import replace
from typing import get_args

import pytest
from components.judge.appraiser import EvidenceAppraiser
from components.judge.local import LocalJudge
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge.evaluator import RetrievalEvaluator
from components.judge.llm import LlmJudge
from components.models.chat import ChatModels
from components.turn import Quality, Turn
from tests.models import DOWN, Reply, ScriptedModels
from tests.turns import passage, turn

E20 = passage("Код E20: вода не сливается.", "c1")
E25 = passage("Код E25: вода не набирается.", "c2")
OTHER = passage("Оплата картой.", "c3")
ASKED = turn("вода не сливается", E20, E25, OTHER)


def form(adequacy: int, *answers: bool, missing: tuple[str, ...] = ("слив",)) -> dict[str, object]:
    grades = [{"number": number, "answers": one} for number, one in enumerate(answers or (True, False, False), 1)]
    return {"passages": grades, "adequacy": adequacy, "missing": list(missing)}


def routed(reply: Reply, given_turn: Turn = ASKED, depth: int = 8) -> tuple[str, Turn]:
    appraiser = EvidenceAppraiser(LlmJudge(ScriptedModels(appraise=reply)), depth=depth)
    evaluator = RetrievalEvaluator(LocalJudge(), threshold=0.57, worth_retrying=0.3, appraiser=appraiser)
    ((socket, after),) = evaluator.run(given_turn).items()
    return socket, after


@pytest.mark.parametrize(
    ("adequacy", "missing", "socket"),
    [
        (75, ("слив",), "enough"),
        (74, ("слив",), "retry"),
        (74, (), "enough"),
        (40, (), "enough"),
        (39, (), "refuse"),
        (0, ("слив",), "retry"),
    ],
)
def test_adequacy_and_what_is_missing_decide(adequacy: int, missing: tuple[str, ...], socket: str) -> None:
    sent_to, after = routed(form(adequacy, missing=missing))
    assert sent_to == socket
    assert (after.evidence.adequacy, after.evidence.missing) == (adequacy / 100, missing)
    assert after.verdict.gates[0].passed == (adequacy >= 75)


def test_topics_already_searched_are_no_reason_to_retry() -> None:
    tried = replace(ASKED, query=replace(ASKED.query, searched_texts=("слив",)))
    assert routed(form(60), tried)[0] == "enough"
    assert routed(form(10), tried)[0] == "refuse"


def test_only_answering_passages_are_accepted_plus_the_best_hit() -> None:
    assert routed(form(80, False, True, False))[1].evidence.relevant_ids == ("c2", "c1")
    socket, after = routed(form(80, False, False, False, missing=()))
    assert (socket, after.evidence.relevant_ids, after.evidence.adequacy) == ("refuse", (), 0.0)
    assert after.verdict.reasons == ("no_evidence",)


def test_passages_not_shown_to_the_model_are_not_accepted() -> None:
    assert routed(form(80, True, True), depth=2)[1].evidence.relevant_ids == ("c1", "c2")


def test_a_code_stays_exact_whatever_the_model_says() -> None:
    about = turn("что значит E401", E25, E20)
    socket, after = routed(form(100, True, False), about)
    assert (socket, after.verdict.reasons, after.evidence.adequacy) == ("refuse", ("code_not_found",), 0.0)


def test_passages_about_other_codes_are_rejected_whatever_the_model_says() -> None:
    """What a model of 1.5 billion parameters did; the question was refused as one about an unknown code."""
    asked_turn = turn("что значит код E20", E25, E20)
    _, after = routed(form(50, True, False), asked_turn)
    assert after.degraded == ("appraiser",)
    assert after.evidence.relevant_ids == asked_turn.evidence.relevant_ids
    assert "code_not_found" not in after.verdict.reasons
    _, none = routed(form(0, False, False), asked_turn)
    assert (none.degraded, "code_not_found" in none.verdict.reasons) == ((), False)


@pytest.mark.parametrize(("relevance", "socket"), [(0.57, "enough"), (0.5, "retry"), (0.29, "refuse")])
def test_the_local_judgement_is_the_fallback_when_no_model_appraises(relevance: float, socket: str) -> None:
    measured = turn("вода не сливается", E20, E25, relevance=relevance)
    sent_to, after = routed(DOWN, measured)
    assert (sent_to, after.degraded) == (socket, ("appraiser",))
    assert (after.evidence.relevant_ids, after.evidence.adequacy) == (measured.evidence.relevant_ids, relevance)


def test_a_hopeless_question_is_refused_without_a_model_call() -> None:
    models = ScriptedModels(appraise=form(100))
    evaluator = RetrievalEvaluator(LocalJudge(), appraiser=EvidenceAppraiser(LlmJudge(models), promising=0.2))
    assert "refuse" in evaluator.run(turn("вода не сливается", E20, relevance=0.19))
    assert not models.asked
    assert "enough" in evaluator.run(turn("вода не сливается", E20, E25, OTHER, relevance=0.2))
    assert models.asked == ["appraise"]


def test_round_trip() -> None:
    pipeline = Pipeline()
    appraiser = EvidenceAppraiser(LlmJudge(ChatModels(ScriptedModels().fast)), promising=0.1, min_adequacy=0.5)
    pipeline.add_component("evaluate", RetrievalEvaluator(LocalJudge(), appraiser=appraiser))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components", "haystack"])
    assert again.dumps() == pipeline.dumps()


@given(
    st.integers(0, 100),
    st.tuples(*[st.booleans()] * 3),
    st.sampled_from(get_args(Quality)),
    st.integers(1, 5),
    st.booleans(),
)
def test_exactly_one_route_and_never_beyond_the_budget(
    adequacy: int, answers: tuple[bool, ...], quality: Quality, passes: int, grew: bool
) -> None:
    asked_turn = replace(ASKED, quality=quality, passes=passes, evidence=replace(ASKED.evidence, has_new=grew))
    socket, after = routed(form(adequacy, *answers), asked_turn)
    assert set(after.evidence.relevant_ids) <= set(asked_turn.evidence.relevant_ids)
    if socket == "retry":
        assert grew
        assert passes < asked_turn.max_passes
    if socket == "enough":
        assert after.evidence.relevant_ids
        assert after.evidence.adequacy >= 0.4

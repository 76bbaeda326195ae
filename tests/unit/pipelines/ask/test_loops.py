"""Both loops of the ask pipeline: never more than the budget, never less evidence, never a worse draft."""

from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.language.texts import LOCALES
from components.turn import EXTRA_PASSES, Intent, Outcome, Quality, Reason, Risk, Turn
from tests.turns import BrokenJudge
from tests.unit.pipelines.ask.scripted import (
    THRESHOLD,
    WORTH_RETRYING,
    CountingAnswerer,
    EndlessRewriter,
    FixedReply,
    Pass,
    Script,
    ScriptedJudge,
    ScriptedRetriever,
    ids,
    judged_by,
    passing_steps,
    play,
    run,
)

pytestmark = pytest.mark.usefixtures("empty_shop")

_CHUNKS = [f"{document}.{number}" for document in "abcde" for number in range(5)]
_SHOWN = {"answered", "partially_answered"}

chunk_ids = st.sampled_from(_CHUNKS)
passes = st.builds(
    Pass,
    found=st.dictionaries(chunk_ids, st.floats(0.01, 1.0), max_size=12),
    quality=st.integers(1, 100),
    supported=st.lists(st.booleans(), max_size=4).map(tuple),
)
grades = st.one_of(st.just(0.0), st.floats(0, 1), st.floats(WORTH_RETRYING, THRESHOLD), st.floats(0.8, 1))
relevances = st.one_of(
    st.dictionaries(chunk_ids, grades),
    grades.map(lambda grade: dict.fromkeys(_CHUNKS, grade)),
)
scripts: st.SearchStrategy[Script] = st.tuples(
    st.lists(passes, min_size=5, max_size=5), relevances, st.frozensets(chunk_ids, max_size=6)
).map(lambda parts: Script(*parts))
qualities = st.sampled_from(get_args(Quality))


@settings(max_examples=60)
@given(scripts, qualities)
def test_the_loops_keep_their_promises(script: Script, quality: Quality) -> None:
    final = play(script, Turn("t", "Вопрос?", quality=quality))

    assert final.passes == len(script.seen) <= 1 + EXTRA_PASSES[quality] == final.max_passes
    assert final.outcome in get_args(Outcome)
    assert final.reply.text or final.outcome in _SHOWN
    assert final.verdict.route in {"auto", "human"}
    _evidence_only_grew(script, final)
    _best_draft_was_kept(script, final)
    if final.outcome == "clarify" or final.reason == "no_relevant_context":
        assert script.answers == 0
    if not final.evidence.relevant_ids:
        assert (final.outcome, script.answers) == ("refused", 0)


def _evidence_only_grew(script: Script, final: Turn) -> None:
    """It never lost a passage, and a pass was followed by another only if it had brought one."""
    history = [*script.seen, ids(final)]
    for number, (before, after) in enumerate(pairwise(history), 1):
        assert before <= after
        assert before < after or number == final.passes


def _best_draft_was_kept(script: Script, final: Turn) -> None:
    assert len(script.drafts) == script.answers
    if not script.drafts:
        assert final.best is None
        return
    best, quality, relevance = max(script.drafts, key=lambda one: (one[0].factuality, one[1], one[2]))
    assert final.best is not None
    assert (final.best.text, final.best.quality, final.best.relevance) == (best.text, quality, relevance)
    assert final.draft == final.best
    if final.outcome in _SHOWN:
        assert final.reply.text == best.text
        assert "выдумка" not in final.reply.text


@given(scripts, qualities)
def test_all_no_is_no_evidence(script: Script, quality: Quality) -> None:
    script.relevances = {}
    final = play(script, Turn("t", "Вопрос?", quality=quality))
    assert (final.outcome, final.reason) == ("refused", "no_relevant_context")
    assert (script.answers, final.passes, final.evidence.relevant_ids) == (0, 1, ())


NEW_EVERY_TIME = [Pass({f"a.{number}": 0.9}, quality=10) for number in range(5)]
SCORES = {
    "weak evidence": dict.fromkeys(_CHUNKS, WORTH_RETRYING),
    "poor drafts": dict.fromkeys(_CHUNKS, THRESHOLD),
}


@pytest.mark.parametrize("quality", get_args(Quality))
@pytest.mark.parametrize("relevances", SCORES.values(), ids=SCORES)
def test_the_budget_is_spent_while_it_brings_something(relevances: dict[str, float], quality: Quality) -> None:
    script = Script([Pass({f"{document}.0": 0.9}, quality=10) for document in "abcde"], relevances)
    final = play(script, Turn("t", "Вопрос?", quality=quality))
    assert final.passes == 1 + EXTRA_PASSES[quality]


@pytest.mark.parametrize("relevances", SCORES.values(), ids=SCORES)
def test_nothing_new_ends_the_loop(relevances: dict[str, float]) -> None:
    script = Script([Pass({"a.0": 0.9}, quality=10)] * 5, relevances)
    assert play(script, Turn("t", "Вопрос?", quality="thorough")).passes == 2


def test_the_same_words_found_again_are_nothing_new() -> None:
    script = Script(
        [Pass({"a.0": 0.9, f"b.{number}": 0.5}, quality=10) for number in range(5)],
        SCORES["poor drafts"],
        frozenset(_CHUNKS),
    )
    final = play(script, Turn("t", "Вопрос?", quality="thorough"))
    assert final.passes == 2
    assert ids(final) == {"a.0"}


def test_a_better_draft_replaces_and_a_worse_one_does_not() -> None:
    qualities = [40, 70, 20, 60, 10]
    script = Script(
        [Pass({f"{document}.0": 0.9}, quality=one) for document, one in zip("abcde", qualities, strict=True)],
        SCORES["poor drafts"],
    )
    final = play(script, Turn("t", "Вопрос?", quality="thorough"))
    assert final.passes == 5
    assert final.best is not None
    assert (final.best.quality, final.best.text) == (70, "Проход 2, 0: верно. [1]")
    assert len(final.reply.articles) == 3
    assert (final.outcome, final.verdict.route) == ("low_confidence", "human")
    assert "budget_exhausted" in final.verdict.reasons


def test_a_good_draft_ends_the_loop_at_once() -> None:
    script = Script([Pass({"a.0": 0.9})] * 5, {"a.0": 0.95})
    final = play(script, Turn("t", "Вопрос?", quality="thorough"))
    assert (final.passes, final.outcome, final.verdict.route) == (1, "answered", "auto")
    assert all(gate.passed for gate in final.verdict.gates)


def test_a_question_without_new_queries_ends_with_a_route_that_is_an_end() -> None:
    script = Script([Pass({"a.0": 0.9}, quality=10)] * 5, SCORES["poor drafts"])
    steps = {**passing_steps(), **judged_by(ScriptedJudge(script))}
    steps |= {"retrieve": ScriptedRetriever(script), "answer": CountingAnswerer(script)}
    final = run(Turn("t", "и", quality="thorough"), steps)
    assert final.passes == 1
    assert (final.outcome, final.verdict.route) == ("low_confidence", "human")


FIXED: list[tuple[Outcome, Reason, Intent, Risk]] = [
    ("nonsense", "no_intent", "nonsense", "none"),
    ("irrelevant", "off_topic", "irrelevant", "none"),
    ("irrelevant", "off_topic", "chitchat", "none"),
    ("out_of_scope", "out_of_scope", "out_of_scope", "none"),
    ("human_followup", "user_request", "wants_human", "none"),
    ("blocked", "blocked_by_guardrails", "answerable", "none"),
    *(("high_stakes", "high_risk", "high_stakes", risk) for risk in get_args(Risk)),
]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize(("outcome", "reason", "intent", "risk"), FIXED)
def test_a_fixed_reply_searches_and_writes_nothing(
    outcome: Outcome, reason: Reason, intent: Intent, risk: Risk, locale: str
) -> None:
    script = Script([], {})
    turn = Turn("t", "Вопрос?", locale=locale)
    stopped = replace(turn, outcome=outcome, reason=reason, intent=intent, risk=risk)
    steps = {**passing_steps(), **judged_by(ScriptedJudge(script)), "intent": FixedReply(stopped)}
    steps |= {"retrieve": ScriptedRetriever(script), "answer": CountingAnswerer(script)}
    final = run(turn, steps)
    assert (final.outcome, final.reason, final.passes) == (outcome, reason, 0)
    assert (script.seen, script.answers) == ([], 0)
    assert final.reply.text
    assert final.reply.suggestions == ()


def broken(*methods: str, quality: Quality = "balanced") -> tuple[Turn, Script]:
    """A turn whose judge raises in these methods, over evidence that is good."""
    script = Script([Pass({f"{document}.0": 0.9, f"{document}.1": 0.8}) for document in "abcde"], {})
    judge = BrokenJudge(*methods, relevances=dict.fromkeys(_CHUNKS, 0.95))
    steps = {**passing_steps(), **judged_by(judge), "rewrite": EndlessRewriter()}
    steps |= {"retrieve": ScriptedRetriever(script), "answer": CountingAnswerer(script)}
    return run(Turn("t", "Вопрос?", quality=quality), steps), script


METHODS = ("relevance", "uncovered", "check_all", "evaluate")


@pytest.mark.parametrize("quality", get_args(Quality))
@pytest.mark.parametrize("methods", [(method,) for method in METHODS] + [METHODS], ids="+".join)
def test_a_judge_that_fails_is_declared(methods: tuple[str, ...], quality: Quality) -> None:
    final, _ = broken(*methods, quality=quality)
    assert final.outcome in get_args(Outcome)
    assert final.passes <= final.max_passes
    assert final.degraded
    assert "own words" not in final.reply.text


def test_what_nobody_could_grade_is_no_refusal() -> None:
    final, script = broken("relevance")
    assert (final.outcome, final.reason, final.degraded) == ("failed", "pipeline_error", ("grader",))
    assert not script.answers


@pytest.mark.parametrize("methods", [("check_all",), ("evaluate",), ("check_all", "evaluate")], ids="+".join)
def test_what_nobody_could_check_is_not_answered(methods: tuple[str, ...]) -> None:
    final, script = broken(*methods)
    assert script.answers
    assert final.outcome not in {"answered", "partially_answered"}
    if "check_all" in methods:
        assert final.best is not None
        assert final.best.factuality_status == "failed"
        assert final.outcome == "human_followup"
        assert final.best.text not in final.reply.text

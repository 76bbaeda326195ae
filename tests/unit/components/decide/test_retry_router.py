"""Facts first, then two gates, then the budget."""

from dataclasses import replace
from typing import get_args

import pytest
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.decide.retry_router import RetryRouter
from components.turn import Citation, Claim, ClaimStatus, Draft, FactualityStatus, Gate, Quality, Turn, Verdict
from tests.turns import passage, turn

SOURCE = passage("Гарантия два года.")
GOOD = Draft(
    "Гарантия два года. [1]",
    (Claim("Гарантия два года.", (1,), "supported", "Гарантия два года."),),
    (Citation(1, SOURCE, SOURCE.text, (0, len(SOURCE.text))),),
    factuality=100.0,
    factuality_status="checked",
    quality=90,
    relevance=0.9,
    answerability="fully",
)

LET_THROUGH = Verdict(gates=(Gate("relevance", True, 0.9, 0.8),))
"""Of the evaluation of the evidence, before the answer."""


def routed(
    draft: Draft | None, *, has_new: bool = True, passes: int = 1, best: Draft | None = None
) -> tuple[str, Turn]:
    routed_turn = replace(turn("?", SOURCE), draft=draft, best=best, passes=passes, verdict=LET_THROUGH)
    routed_turn = replace(routed_turn, evidence=replace(routed_turn.evidence, has_new=has_new))
    ((socket, after),) = RetryRouter(80, 80.0).run(routed_turn).items()
    return socket, after


def test_a_good_draft_is_released() -> None:
    socket, after = routed(GOOD)
    assert (socket, after.verdict.route, after.verdict.reasons) == ("done", "auto", ())
    assert {gate.name for gate in after.verdict.gates} == {"factuality", "quality", "relevance"}


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (replace(GOOD, quality=79), "quality"),
        (replace(GOOD, relevance=0.79), "relevance"),
        (replace(GOOD, factuality=79.0), "factuality"),
        (replace(GOOD, factuality_status="failed"), "factuality"),
        (replace(GOOD, factuality_status="skipped"), "factuality"),
        (replace(GOOD, agreement=0.4), "agreement"),
        (replace(GOOD, claims=()), "factuality"),
        (replace(GOOD, claims=(replace(GOOD.claims[0], citations=()),)), "factuality"),
        (replace(GOOD, claims=(replace(GOOD.claims[0], status="partially_supported"),)), "factuality"),
    ],
)
def test_each_gate_alone_stops_a_draft(draft: Draft, reason: str) -> None:
    socket, after = routed(draft)
    assert (socket, after.verdict.route, after.verdict.reasons) == ("retry", "retry", (reason,))
    assert [gate.name for gate in after.verdict.gates if not gate.passed] == [reason]


def test_quality_does_not_compensate_for_unsupported_facts() -> None:
    assert routed(replace(GOOD, quality=100, relevance=1.0, factuality=0.0))[0] == "retry"


def test_a_pass_without_new_evidence_ends_the_loop() -> None:
    socket, after = routed(replace(GOOD, quality=10), has_new=False)
    assert (socket, after.verdict.route, after.verdict.reasons) == ("done", "human", ("quality",))


def test_an_exhausted_budget_is_named_as_reason() -> None:
    socket, after = routed(replace(GOOD, quality=10), passes=3)
    assert (socket, after.verdict.route, after.verdict.reasons) == ("done", "human", ("quality", "budget_exhausted"))


def test_the_best_draft_of_all_passes_is_routed() -> None:
    socket, after = routed(replace(GOOD, quality=1), best=GOOD)
    assert (socket, after.draft, after.best) == ("done", GOOD, GOOD)


def test_a_turn_without_a_draft_is_not_answered() -> None:
    assert routed(None)[1].verdict.route == "retry"
    assert routed(None, passes=3)[1].verdict.route == "human"


drafts = st.builds(
    replace,
    st.just(GOOD),
    quality=st.integers(0, 100),
    relevance=st.floats(0, 1),
    factuality=st.floats(0, 100),
    factuality_status=st.sampled_from(get_args(FactualityStatus)),
    claims=st.lists(
        st.builds(Claim, st.just("Да."), st.sampled_from([(), (1,)]), st.sampled_from(get_args(ClaimStatus))),
        max_size=3,
    ).map(tuple),
)


@given(drafts, st.sampled_from(get_args(Quality)), st.integers(1, 5), st.booleans())
def test_exactly_one_route_and_never_beyond_the_budget(
    draft: Draft, quality: Quality, passes: int, has_new: bool
) -> None:
    routed_turn = replace(turn("?", SOURCE), draft=draft, quality=quality, passes=passes)
    routed_turn = replace(routed_turn, evidence=replace(routed_turn.evidence, has_new=has_new))
    ((socket, after),) = RetryRouter().run(routed_turn).items()
    assert after.verdict.route in {"retry"} if socket == "retry" else after.verdict.route in {"auto", "human"}
    if socket == "retry":
        assert passes < routed_turn.max_passes
        assert has_new
    if after.verdict.route == "auto":
        assert draft.claims
        assert all(claim.status == "supported" and claim.citations for claim in draft.claims)
        assert all(gate.passed and gate.score >= gate.threshold for gate in after.verdict.gates)
    else:
        assert after.verdict.reasons


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("route", RetryRouter(70, 60.0, 0.4))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["route"]["init_parameters"] == {
        "quality_threshold": 70,
        "factuality_threshold": 60.0,
        "agreement_threshold": 0.4,
    }


def routed_question(question: str, draft: Draft = GOOD, standalone_question: str = "") -> tuple[str, Turn]:
    """The good draft as an answer to this question, whose words are all rare."""
    given_turn = replace(turn(question, SOURCE), draft=draft, standalone_question=standalone_question)
    given_turn = replace(
        given_turn, query=replace(given_turn.query, weights=dict.fromkeys(given_turn.query.weights, 5.0))
    )
    ((socket, after),) = RetryRouter(80, 80.0).run(replace(given_turn, passes=given_turn.max_passes)).items()
    return socket, after


@pytest.mark.parametrize(
    ("question", "failed"),
    [
        ("Сколько действует гарантия?", ()),
        ("Какой срок гарантии?", ()),
        ("Сколько стоит гарантия?", ("kind",)),
        ("Где оформить гарантию?", ("kind",)),
        ("Какая гарантия на Samsung?", ("object",)),
        ("Сколько стоит гарантия на Samsung?", ("kind", "object")),
    ],
)
def test_an_answer_must_match_the_kind_and_object_of_the_question(question: str, failed: tuple[str, ...]) -> None:
    _, after = routed_question(question)
    assert tuple(gate.name for gate in after.verdict.gates if not gate.passed) == failed
    assert (after.verdict.route == "auto") == (not failed)


def test_a_question_in_another_language_than_the_answer_shares_no_words_to_tell_its_kind_by() -> None:
    _, after = routed_question("How long is the warranty?")
    assert after.verdict.route == "auto"


def test_a_follow_up_question_has_no_kind() -> None:
    _, after = routed_question("Сколько стоит?", standalone_question="Сколько стоит гарантия на Samsung?")
    assert after.verdict.route == "auto"


@pytest.mark.parametrize(
    ("heading", "question", "failed"),
    [
        ("Гарантия", "Сколько действует гарантия?", False),
        ("Товар › Перед началом работы", "Сколько действует гарантия?", True),
        ("Что дальше", "Сколько действует гарантия?", True),
        ("2. Оформите гарантию", "Сколько действует гарантия?", True),
        ("Товар › Требования", "Требования для гарантии на товар", False),
    ],
)
def test_what_stands_before_or_after_the_matter_is_no_answer(heading: str, question: str, failed: bool) -> None:
    source = replace(SOURCE, heading=heading)
    draft = replace(GOOD, citations=tuple(replace(one, passage=source) for one in GOOD.citations))
    _, after = routed_question(question, draft)
    assert [gate.name for gate in after.verdict.gates if not gate.passed] == (["kind"] if failed else [])


def test_what_a_tool_says_is_held_to_no_kind() -> None:
    looked_up = replace(SOURCE, doc_id="tool:orders")
    draft = replace(GOOD, citations=tuple(replace(one, passage=looked_up) for one in GOOD.citations))
    _, after = routed_question("Где оформить гарантию?", draft)
    assert after.verdict.route == "auto"

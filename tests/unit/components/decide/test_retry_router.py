"""Supported answers are accepted, open questions are searched again within the budget, the best pass wins."""

from dataclasses import replace
from typing import Any

import pytest

from components.answer.drafts import to_answer, to_draft
from components.decide.retry_router import RetryRouter
from components.turn import Draft, Gate, SelfEvaluation
from tests.turns import EVALUATED, draft

CHECKED = replace(draft("Гарантия два года."), factuality_status="checked", factuality=100.0)
PARTLY = SelfEvaluation(60, "partially", 1.0, 0.5, ("возврат",))
CANNOT = SelfEvaluation(5, "cannot", 0.1, 0.1, ("гарантия",))


def routed(one: Draft = CHECKED, evaluation: SelfEvaluation = EVALUATED, **inputs: Any) -> dict[str, Any]:  # noqa: ANN401
    return RetryRouter().run(answers=[to_answer(one, "гарантия")], evaluation=evaluation, **inputs)


def accepted(outputs: dict[str, Any]) -> Draft:
    return to_draft(outputs["accept"][0])


def test_a_full_supported_answer_is_accepted() -> None:
    outputs = routed(gate=Gate("relevance", True, 0.8, 0.4))
    assert (outputs["verdict"].route, outputs["verdict"].reasons) == ("auto", ())
    assert [gate.name for gate in outputs["verdict"].gates] == ["relevance", "factuality", "quality"]
    assert accepted(outputs).confidence == 0.9


def test_a_supported_part_is_accepted_with_what_is_missing() -> None:
    outputs = routed(evaluation=PARTLY, attempt=2)
    assert outputs["verdict"].route == "auto"
    assert (accepted(outputs).answerability, accepted(outputs).missing) == ("partially", ("возврат",))


def test_details_that_nobody_asked_for_do_not_make_an_answer_partial() -> None:
    outputs = routed(replace(CHECKED, missing=("цвет упаковки",)))
    assert (accepted(outputs).answerability, accepted(outputs).missing) == ("fully", ())


def test_dropped_claims_make_a_partial_answer_of_a_full_one() -> None:
    outputs = routed(replace(CHECKED, factuality=50.0))
    assert (outputs["verdict"].route, outputs["verdict"].reasons) == ("auto", ("factuality",))
    assert accepted(outputs).confidence == 0.45


def test_an_open_part_is_searched_for_while_the_budget_lasts() -> None:
    outputs = routed(evaluation=PARTLY, attempt=1)
    assert outputs["retry"] == ["возврат"]
    assert to_draft(outputs["best"]).answerability == "partially"
    assert "accept" not in outputs


@pytest.mark.parametrize("inputs", [{"attempt": 2}, {"attempt": 1, "grew": False}, {"attempt": 1, "quality": "quick"}])
def test_no_pass_is_made_without_budget_or_new_documents(inputs: dict[str, Any]) -> None:
    assert "accept" in routed(evaluation=PARTLY, **inputs)


@pytest.mark.parametrize("one", [replace(CHECKED, claims=(), text="", factuality=0.0), CHECKED])
def test_an_answer_to_something_else_goes_to_a_person(one: Draft) -> None:
    assert routed(one, CANNOT, attempt=2)["verdict"].route == "human"


def test_an_unchecked_answer_passes_no_gate() -> None:
    outputs = routed(replace(CHECKED, factuality_status="failed", factuality=0.0))
    assert "factuality" in outputs["verdict"].reasons


def test_a_later_pass_that_does_better_wins() -> None:
    earlier = replace(CHECKED, answerability="partially", quality=50, missing=("возврат",))
    later = replace(CHECKED, factuality=80.0)
    outputs = routed(later, EVALUATED, attempt=2, best=to_answer(earlier, "гарантия"))
    assert accepted(outputs).answerability == "fully"


def test_an_earlier_pass_is_kept_if_the_later_one_fails() -> None:
    earlier = replace(CHECKED, answerability="partially", quality=60, confidence=0.5)
    outputs = routed(replace(CHECKED, claims=(), text=""), CANNOT, attempt=2, best=to_answer(earlier, "гарантия"))
    assert accepted(outputs).claims == CHECKED.claims
    assert outputs["verdict"].route == "auto"


def test_a_verified_part_is_kept_if_nobody_could_verify_the_later_pass() -> None:
    earlier = replace(CHECKED, answerability="partially", quality=50, missing=("возврат",))
    unchecked = replace(CHECKED, factuality_status="failed", factuality=0.0)
    outputs = routed(unchecked, EVALUATED, attempt=2, best=to_answer(earlier, "гарантия"))
    assert (accepted(outputs), outputs["verdict"].route) == (earlier, "auto")


def test_drafts_that_disagree_fail_a_gate() -> None:
    assert "agreement" in routed(replace(CHECKED, agreement=0.2), attempt=2)["verdict"].reasons

"""What is shown, held against the passages it cites, as a stranger would who has only the answer and those."""

from dataclasses import replace

import pytest

from components.answer.extractive import ExtractiveAnswerer
from components.decide.outcome import OutcomeComposer
from components.turn import Turn
from evaluation.metrics.shown import unentailed
from pipelines.ask.answering import answer_of
from tenants import policy
from tenants.policy import Policy
from tests.turns import passage, turn

QUESTION = "Как обратиться в поддержку на портале по телефону?"
ADDRESS = "https://help.example/portal"
SOURCE = passage(f"Обратитесь в поддержку на портале помощи {ADDRESS}.", "c1", title="Поддержка")


def shown(change: tuple[str, str] = ("", "")) -> list[str]:
    asked = turn(QUESTION, SOURCE)
    with policy.overridden(Policy()):
        drafted: Turn = ExtractiveAnswerer().run(asked)["turn"]
        assert drafted.draft is not None
        verdict = replace(drafted.verdict, route="auto")
        ended: Turn = OutcomeComposer().run(replace(drafted, verdict=verdict))["turn"]
    answer = answer_of(ended)
    assert answer.outcome == "answered"
    assert ADDRESS not in answer.answer.text
    text = answer.answer.text.replace(*change)
    claims = [claim.model_copy(update={"text": claim.text.replace(*change)}) for claim in answer.claims]
    answer = answer.model_copy(update={"answer": answer.answer.model_copy(update={"text": text}), "claims": claims})
    return unentailed(QUESTION, answer, {"c1": SOURCE})


def test_an_address_that_may_not_be_shown_is_no_claim() -> None:
    assert shown() == []


@pytest.mark.parametrize("change", [("Обратитесь", "Не обращайтесь"), ("[1]", "[2]"), ("помощи", "по телефону")])
def test_what_no_passage_bears_out_is_found(change: tuple[str, str]) -> None:
    assert shown(change)

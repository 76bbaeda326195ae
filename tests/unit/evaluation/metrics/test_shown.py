"""The visible answer is compared with the passages it cites, without knowledge of the pipeline."""

import pytest

from components.answer.extractive import ExtractiveAnswerer
from components.decide.outcome import OutcomeComposer
from components.decide.retry_router import RetryRouter
from components.judge.verifier import FactVerifier
from evaluation.metrics.shown import unentailed
from pipelines.ask.answering import answer_of
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.knowledge import lexicon, relations
from tenants.knowledge.lexicon import Lexicon
from tests.turns import EVALUATED, document, passage

QUESTION = "Как обратиться в поддержку на портале по телефону?"
ADDRESS = "https://help.example/portal"
SOURCE = f"Обратитесь в поддержку на портале помощи {ADDRESS}."


@pytest.fixture(autouse=True)
def terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}))
    monkeypatch.setattr(relations, "current", lambda: relations.NONE)


def shown(change: tuple[str, str] = ("", "")) -> list[str]:
    """Return the faults of a quotation of which a part was changed after it was checked."""
    found = [document(SOURCE)]
    with policy.overridden(Policy(allowed_domains=("shop.example",))):
        answers = FactVerifier().run(answers=ExtractiveAnswerer().run(query=QUESTION, documents=found)["answers"])
        routed = RetryRouter().run(answers=answers["answers"], evaluation=EVALUATED)
        turn = OutcomeComposer().run(
            QUESTION, graded=found, looked_up=found, answers=routed["accept"], verdict=routed["verdict"]
        )["turn"]
    answer = answer_of(turn)
    assert answer.outcome == "answered"
    assert ADDRESS not in answer.answer.text
    text = answer.answer.text.replace(*change)
    claims = [claim.model_copy(update={"text": claim.text.replace(*change)}) for claim in answer.claims]
    answer = answer.model_copy(update={"answer": answer.answer.model_copy(update={"text": text}), "claims": claims})
    return unentailed(QUESTION, answer, {"c1": passage(SOURCE)})


def test_an_address_that_may_not_be_shown_is_no_claim() -> None:
    assert shown() == []


@pytest.mark.parametrize(
    "change", [("[1]", "[2]"), ("помощи", "до 18:00"), ("Обратитесь в поддержку", "Скачайте новую программу")]
)
def test_what_no_passage_bears_out_is_found(change: tuple[str, str]) -> None:
    assert shown(change)

"""A step that continues without its judge, model or records reports that in the turn and in the log."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.answer import suggestions
from components.answer.suggestions import QuestionSuggester
from components.faults import collect_degraded
from components.judge.grader import DocGrader
from components.judge.self_evaluator import SelfEvaluator
from components.judge.verifier import FactVerifier
from components.passages import to_passage
from components.retrieve.related import EvidenceContext
from components.understand.query_writer import LlmQueryWriter
from components.understand.rewrite import QueryRewriter
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge.relations import Relations
from tests.installations import installed
from tests.models import DOWN, ScriptedModels
from tests.turns import FixedJudge, answer, document

QUESTION = "Секретный вопрос о гарантии"
SOURCE = document("Гарантия два года.", heading="Гарантия")
OTHER = document("Возврат 14 дней.", "c2", heading="Возврат")
WRITTEN = answer("Гарантия длится два года.", of=to_passage(SOURCE))


def fails(*_: object) -> None:
    raise OSError("the provider's own words")


def related_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.retrieve.related.relations.current", Relations)
    monkeypatch.setattr(EvidenceContext, "_related", fails)


def nothing(_: pytest.MonkeyPatch) -> None:
    """Do nothing: the judge or the model is broken already."""


Breaks = Callable[[pytest.MonkeyPatch], None]
STEPS: dict[str, tuple[Callable[[], object], Breaks]] = {
    "grader": (
        lambda: DocGrader(0.5, judge=FixedJudge(broken=["grade"])).run(  # type: ignore[arg-type]
            query=QUESTION, documents=[SOURCE], quality="thorough"
        ),
        nothing,
    ),
    "related": (lambda: EvidenceContext().run(query=QUESTION, documents=[SOURCE]), related_fails),
    "verifier": (
        lambda: FactVerifier(judge=FixedJudge(broken=["check"])).run(answers=[WRITTEN]),  # type: ignore[arg-type]
        nothing,
    ),
    "self_evaluator": (
        lambda: SelfEvaluator(judge=FixedJudge(broken=["evaluate"])).run(  # type: ignore[arg-type]
            query=QUESTION, answers=[WRITTEN]
        ),
        nothing,
    ),
    "suggestions": (
        lambda: QuestionSuggester().run(documents=[SOURCE, OTHER], answers=[WRITTEN]),
        lambda monkeypatch: monkeypatch.setattr(suggestions, "_topics", fails),
    ),
    "rewriter": (
        lambda: QueryRewriter(writer=LlmQueryWriter(ScriptedModels(rewrite=DOWN))).run(
            query=QUESTION, missing=["срок"], attempt=1, documents=[SOURCE]
        ),
        nothing,
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder: Path = tmp_path_factory.mktemp("data")
    with installed(folder):
        Registry().add("shop")
        with acting_as(Tenant("shop", "anna", SCOPES)):
            yield


@pytest.mark.parametrize("step", STEPS)
def test_a_degraded_step_logs_the_cause(
    step: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, breaks = STEPS[step]
    breaks(monkeypatch)
    with caplog.at_level(logging.DEBUG), collect_degraded() as degraded:
        run()
    assert list(degraded) == [step]
    (logged,) = [one.getMessage() for one in caplog.records if one.name == "opora.steps"]
    assert logged.startswith(f"without {step}: ")
    assert ".py:" in logged, "where it came from"
    assert "own words" not in caplog.text
    assert "екретный" not in caplog.text

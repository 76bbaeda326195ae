"""A step that goes on without its judge, its model or its records says so in the turn and in the log."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from components.judge.appraiser import EvidenceAppraiser
from components.judge.context import EvidenceContext
from components.judge.local import LocalJudge
from components.judge.reviewer import DraftReviewer

from components.answer.suggestions import QuestionSuggester
from components.judge.evaluator import RetrievalEvaluator
from components.judge.grader import DocGrader
from components.judge.llm import LlmJudge
from components.judge.self_evaluator import SelfEvaluator
from components.judge.verifier import FactVerifier
from components.retrieve.tools import ToolSearch
from components.turn import Citation, Claim, Draft, Turn, Verdict
from components.understand.query_writer import LlmQueryWriter
from components.understand.rewrite import QueryRewriter
from tenants.context import SCOPES, Tenant, acting_as
from tenants.registry import Registry
from tenants.relations import Relations
from tests.installations import installed
from tests.models import DOWN, ScriptedModels
from tests.turns import BrokenJudge, passage, turn

SECRET = "Секретный вопрос о гарантии"
SOURCE = passage("Гарантия два года.", heading="Гарантия")
OTHER = passage("Возврат 14 дней.", "c2", heading="Возврат")
FOUND = turn(SECRET, SOURCE, OTHER)
DRAFT = Draft("Гарантия два года. [1]", (Claim("Гарантия два года.", (1,)),), (Citation(1, SOURCE, "", (0, 18)),))
WRITTEN = replace(FOUND, draft=DRAFT, verdict=Verdict("auto"))
MODELS = ScriptedModels(appraise=DOWN, claims=DOWN, evaluate=DOWN, rewrite=DOWN)
RETRIED = replace(FOUND, passes=1)


def related_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("the database's own words")

    monkeypatch.setattr("components.judge.context.related", fails)
    monkeypatch.setattr("components.judge.context.rejected", lambda *_: ())
    monkeypatch.setattr("components.judge.context.relations.current", Relations)


def tools_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("the tool's own words")

    monkeypatch.setattr(ToolSearch, "consult", fails)


def nothing(_: pytest.MonkeyPatch) -> None:
    """Break nothing more: the judge or the model is broken already."""


Run = Callable[[Turn], dict[str, Turn]]
REVIEWER = DraftReviewer(LlmJudge(MODELS))
STEPS: dict[str, tuple[Run, Turn, Callable[[pytest.MonkeyPatch], None]]] = {
    "grader": (
        DocGrader(BrokenJudge("relevance")).run,
        replace(FOUND, evidence=replace(FOUND.evidence, relevance_by_chunk={})),
        nothing,
    ),
    "retrieval_evaluator": (RetrievalEvaluator(BrokenJudge("uncovered")).run, FOUND, nothing),
    "tools": (RetrievalEvaluator(LocalJudge(), tools=ToolSearch()).run, FOUND, tools_fail),
    "appraiser": (RetrievalEvaluator(LocalJudge(), appraiser=EvidenceAppraiser(LlmJudge(MODELS))).run, FOUND, nothing),
    "related": (EvidenceContext().run, FOUND, related_fails),
    "verifier": (FactVerifier(BrokenJudge("check_all")).run, WRITTEN, nothing),
    "verifier, self_evaluator": (FactVerifier(LocalJudge(), reviewer=REVIEWER).run, WRITTEN, nothing),
    "self_evaluator": (SelfEvaluator(BrokenJudge("evaluate")).run, WRITTEN, nothing),
    "suggestions": (QuestionSuggester(BrokenJudge("relevance")).run, WRITTEN, nothing),
    "rewriter": (QueryRewriter(writer=LlmQueryWriter(MODELS)).run, RETRIED, nothing),
}


@pytest.fixture(scope="module", autouse=True)
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder: Path = tmp_path_factory.mktemp("data")
    with installed(folder):
        Registry().add("shop")
        with acting_as(Tenant("shop", "anna", SCOPES)):
            yield


@pytest.mark.parametrize("names", STEPS)
def test_a_degraded_step_logs_the_cause(
    names: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, given, breaks = STEPS[names]
    breaks(monkeypatch)
    with caplog.at_level(logging.DEBUG):
        ((_, after),) = run(given).items()
    assert after.degraded == tuple(names.split(", "))
    logged = [one.getMessage() for one in caplog.records if one.name == "opora.steps"]
    assert len(logged) == len(after.degraded)
    for step, message in zip(after.degraded, logged, strict=True):
        assert message.startswith(f"turn t without {step}: ")
        assert ".py:" in message, "where it came from"
    assert "own words" not in caplog.text
    assert "екретный" not in caplog.text

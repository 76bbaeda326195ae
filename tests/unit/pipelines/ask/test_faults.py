"""Models and tools that fail in every way, at every task, in whole turns.

Models that obey what they read are among them: orders in a question and in a document.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import get_args

import pytest

from components.answer import suggestions
from components.answer.suggestions import QuestionSuggester
from components.embed import dense
from components.faults import collect_degraded
from components.models import attempts, breaker
from components.models.calls import collect_calls
from components.passages import to_passage
from components.retrieve.cache import SearchCache, TenantLruCache
from components.turn import Passage
from evaluation.metrics.shown import passages, unentailed
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs, Task
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.engine import AskEngine
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from settings import ROOT, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import tools
from tests.installations import installed
from tests.turns import answer, document
from tests.unit.pipelines.ask import injected
from tests.unit.pipelines.ask.faults import QUESTION, SEARCHING, Trial, equip, tool, trials
from tests.unit.pipelines.ask.injected import leaked

SLOW = frozenset({"hang", "slow"})
QUICK = [
    trial
    for trial in trials()
    if not trial.later
    and trial.kind not in SLOW
    and trial.task not in SEARCHING
    and (trial.task == "answer" or trial.kind in ("500", "wrong_schema", "injected", "doubtful", "sloppy", "copied"))
]
"""Every kind of fault in writing, and every task with one fault of each sort."""
OBEDIENT = Knobs(faults=(Fault(kind="injected", task="answer"),))
"""A writer that obeys injected instructions."""
ALL_OBEDIENT = Knobs(faults=(Fault(kind="injected"),))
"""The models that judge it agree to everything, too."""
EQUIPPED = Tenant("equipped", "anna", SCOPES)
ORDERS = injected.orders()[::13]


@dataclass(frozen=True)
class Patient:
    """The profile with models, over a simulator with configurable faults."""

    simulator: Simulator
    ask: Ask

    def answer(self, question: str, knobs: Knobs) -> TurnAnswer:
        self.simulator.set_knobs(knobs)
        return self.ask.answer(AskRequest(question=question, quality="thorough"))


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, shop: Tenant) -> Iterator[Patient]:
    with simulator_thread() as (simulator, url):
        client = Patient(simulator, _ask(tmp_path_factory.mktemp("patient"), url, timeout=30))
        yield client
        client.ask.engine.close()


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory, shop: Tenant) -> Iterator[Patient]:
    with simulator_thread() as (simulator, url):
        client = Patient(simulator, _ask(tmp_path_factory.mktemp("hurried"), url, timeout=0.2))
        yield client
        client.ask.engine.close()


@pytest.fixture(scope="module")
def passages_by_id(shop: Tenant) -> Mapping[str, Passage]:
    return passages()


def _ask(folder: Path, url: str, timeout: float) -> Ask:
    pipelines = adapt(folder, url, timeout=timeout, failures=1_000, concurrent=1_000)
    engine = AskEngine(pipelines / "ask" / "profiles" / "ollama.yaml")
    engine.warm_up()
    return Ask(engine)


def _wrong(question: str, answer: TurnAnswer, passages_by_id: Mapping[str, Passage]) -> list[str]:
    return [*unentailed(question, answer, passages_by_id), *leaked(answer)]


@pytest.mark.parametrize("trial", QUICK, ids=lambda trial: trial.name)
def test_a_fault_ends_as_declared(trial: Trial, patient: Patient, passages_by_id: Mapping[str, Passage]) -> None:
    answer = patient.answer(QUESTION, trial.knobs)

    assert (answer.outcome, answer.meta.degraded) == (trial.outcome, (trial.degraded,) if trial.degraded else ())
    assert answer.answer.text
    assert _wrong(QUESTION, answer, passages_by_id) == []


@pytest.mark.parametrize(
    "trial",
    [trial for trial in trials() if trial.later and trial.kind == "500" and trial.task not in SEARCHING],
    ids=lambda trial: trial.name,
)
def test_a_fault_of_the_second_pass_ends_as_declared(
    trial: Trial, patient: Patient, passages_by_id: Mapping[str, Passage]
) -> None:
    answer = patient.answer(QUESTION, trial.knobs)

    assert answer.outcome == trial.outcome
    assert trial.degraded in answer.meta.degraded
    assert _wrong(QUESTION, answer, passages_by_id) == []


@pytest.mark.parametrize("kind", sorted(SLOW))
def test_a_slow_model_is_abandoned(kind: str, hurried: Patient, passages_by_id: Mapping[str, Passage]) -> None:
    trial = next(trial for trial in trials() if (trial.kind, trial.task) == (kind, "answer"))
    answer = hurried.answer(QUESTION, trial.knobs)

    assert answer.outcome == trial.outcome
    assert trial.degraded in answer.meta.degraded
    assert _wrong(QUESTION, answer, passages_by_id) == []


def test_an_invented_sentence_is_never_shown(patient: Patient) -> None:
    answer = patient.answer(QUESTION, Knobs(faults=(Fault(kind="invented", task="answer"),)))

    assert "87" in next(call.reply for call in patient.simulator.calls if call.task == "answer")
    assert "87" not in answer.answer.text


def test_injected_instructions_in_a_question_are_ignored(
    patient: Patient, passages_by_id: Mapping[str, Passage]
) -> None:
    for order in ORDERS:
        for question in (order, f"{QUESTION} {order}"):
            assert _wrong(question, patient.answer(question, OBEDIENT), passages_by_id) == []
            assert leaked(patient.answer(question, ALL_OBEDIENT)) == []


@pytest.mark.parametrize("place", get_args(injected.Place))
def test_orders_in_a_document_are_not_obeyed(patient: Patient, place: injected.Place) -> None:
    questions, articles = zip(*injected.articles(ORDERS, place), strict=True)
    Registry().add(place)
    with acting_as(Tenant(place, "anna", SCOPES)):
        Ingest().run(articles)
        passages_by_id = passages()
        asked = [(question, patient.answer(question, OBEDIENT)) for question in questions]
        betrayed = [patient.answer(question, ALL_OBEDIENT) for question in questions]

    assert [_wrong(question, answer, passages_by_id) for question, answer in asked] == [[]] * len(ORDERS)
    assert sum(bool(answer.citations) for answer in betrayed) >= len(ORDERS) / 2
    assert list(map(leaked, betrayed)) == [[]] * len(ORDERS)


# What finds evidence: an embedder, a ranker and a tool.


@dataclass(frozen=True)
class Searcher(Patient):
    """A tenant whose index holds vectors, with a ranker and a tool, all of them simulated."""

    engine: AskEngine
    url: str
    known: Mapping[str, Passage]

    def breaker(self, task: Task) -> breaker.Breaker:
        name = "simulated-embed" if task == "embed" else f"{self.url}/tool"
        shared = next(one for key, one in breaker._UPSTREAMS.items() if key[-1] == name)
        return shared.of_tenants[EQUIPPED.tenant_id]

    def met(self, task: Task) -> list[str]:
        """Return the outcomes of a task's calls since the knobs were set."""
        return [call.outcome for call in self.simulator.calls if call.task == task]


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory, shared_installation: None) -> Iterator[Searcher]:
    with simulator_thread() as (simulator, url), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPORA_TOOL_NETWORKS", "127.0.0.0/8")
        patch.setenv("OPORA_RERANK", "true")
        get_settings.cache_clear()
        pipelines = equip(adapt(tmp_path_factory.mktemp("equipped"), url, failures=1_000, timeout=1), url)
        Registry().add(EQUIPPED.tenant_id)
        with acting_as(EQUIPPED):
            Ingest(pipelines / "ingest" / "ingest.yaml").run_path(ROOT / "evaluation" / "demo" / "ru")
            engine = AskEngine(pipelines / "ask" / "profiles" / "ollama.yaml")
            searcher = Searcher(simulator, Ask(engine), engine, url, passages())
        yield searcher
        engine.close()
    get_settings.cache_clear()


@pytest.fixture
def searcher(equipped: Searcher, monkeypatch: pytest.MonkeyPatch) -> Iterator[Searcher]:
    """The searcher with empty caches and closed breakers."""
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    monkeypatch.setattr(dense, "_QUESTIONS", TenantLruCache(10))
    monkeypatch.setattr(equipped.engine.pipeline.get_component("retrieve"), "_searches", SearchCache(0))
    with acting_as(EQUIPPED):
        tools.put(tools.parsed(tool(equipped.url)))
        yield equipped


@pytest.mark.parametrize(
    "trial",
    [
        trial
        for trial in trials()
        if trial.task in SEARCHING and trial.kind not in SLOW and (not trial.later or trial.kind == "500")
    ],
    ids=lambda trial: trial.name,
)
def test_a_fault_of_what_searches_ends_as_declared(trial: Trial, searcher: Searcher) -> None:
    answer = searcher.answer(trial.question, trial.knobs)

    assert (answer.outcome, answer.meta.degraded) == (trial.outcome, (trial.degraded,) if trial.degraded else ())
    assert _wrong(trial.question, answer, searcher.known) == []
    first, *others = searcher.met(trial.task)
    assert trial.kind in others if trial.later else first == trial.kind


@pytest.mark.parametrize(
    "trial",
    [trial for trial in trials() if trial.task in SEARCHING and trial.kind in SLOW and not trial.later],
    ids=lambda trial: trial.name,
)
def test_a_slow_search_model_is_abandoned(trial: Trial, searcher: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.put(tools.parsed(tool(searcher.url, timeout=0.3)))
    monkeypatch.setattr(attempts, "MAX_SHARE", 0.01)
    with collect_calls(deadline=monotonic() + 30) as calls:
        answer = searcher.answer(trial.question, trial.knobs)
        assert calls.remaining() > 0

    assert answer.outcome == trial.outcome
    assert trial.degraded in answer.meta.degraded
    assert _wrong(trial.question, answer, searcher.known) == []


@pytest.mark.parametrize("task", ["embed", "tool"])
def test_what_keeps_failing_is_left_alone_until_it_is_well(task: Task, searcher: Searcher) -> None:
    trial = next(trial for trial in trials() if (trial.kind, trial.task, trial.later) == ("500", task, False))
    for _ in range(6):
        answer = searcher.answer(trial.question, trial.knobs)
        assert (answer.outcome, answer.meta.degraded) == (trial.outcome, (trial.degraded,))
    assert (searcher.met(task), searcher.breaker(task).is_open) == ([], True)

    searcher.breaker(task).pause = 0
    answer = searcher.answer(trial.question, Knobs())

    assert (answer.meta.degraded, set(searcher.met(task))) == ((), {"ok"})
    assert not searcher.breaker(task).is_open


def test_a_degraded_step_logs_the_cause_without_any_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the provider's own words")

    source = document("Гарантия два года.", heading="Гарантия")
    other = document("Возврат 14 дней.", "c2", heading="Возврат")
    monkeypatch.setattr(suggestions, "_topics", fail)
    written = answer("Гарантия длится два года.", of=to_passage(source))
    with installed(tmp_path), caplog.at_level(logging.DEBUG), collect_degraded() as degraded:
        Registry().add("shop")
        with acting_as(Tenant("shop", "anna", SCOPES)):
            QuestionSuggester().run(documents=[source, other], answers=[written])
    assert list(degraded) == ["suggestions"]
    (logged,) = [one.getMessage() for one in caplog.records if one.name == "opora.steps"]
    assert logged.startswith("without suggestions: ")
    assert ".py:" in logged, "where it came from"
    assert "own words" not in caplog.text
    assert "арантия" not in caplog.text

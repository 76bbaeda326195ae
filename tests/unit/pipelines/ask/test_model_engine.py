"""Profiles with models, as deployed and as edited in the authors' guide, over a real index.

The model server is simulated.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from haystack.components.rankers.llm_ranker import LLMRanker
from haystack.tracing.tracer import disable_tracing

from components.models.calls import Call, collect_calls
from components.turn import Quality, Turn
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask.engine import YAML, AskEngine
from pipelines.ask.steps import record_steps
from pipelines.lint import lint_file
from settings import get_settings
from tests.pages import MODELS, marked

pytestmark = pytest.mark.usefixtures("shop")

Deployed: TypeAlias = tuple[AskEngine, Simulator]
_MODEL = re.compile(r"model: [^\s,}]+")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
PROFILE = (YAML.parent / "profiles" / "ollama.yaml").read_text(encoding="utf-8")
E20 = Turn("t", "Стиральная машина показывает ошибку E20, что делать?")
PASSWORD = Turn("t", "Сколько действует ссылка для сброса пароля?")
ABSENT = Turn("t", "Где купить рыбацкие сапоги?")


@pytest.fixture(scope="module", params=["ollama", "openai"])
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with simulator_thread() as (simulator, url), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        pipelines = adapt(tmp_path_factory.mktemp("pipelines"), url, request.param)
        with closing(AskEngine(pipelines / "ask" / "profiles" / f"{request.param}.yaml")) as engine:
            yield engine, simulator
    disable_tracing()


def ask(deployed: Deployed, turn: Turn, *faults: Fault, call_ms: float = 0) -> tuple[Turn, tuple[Call, ...]]:
    engine, simulator = deployed
    simulator.set_knobs(Knobs(faults=faults, call_ms=call_ms))
    with collect_calls() as calls:
        return engine.run(turn), calls.finished


def steps(made: tuple[Call, ...]) -> list[str]:
    return sorted(call.step for call in made)


def test_an_answer_takes_three_calls_and_stands_on_what_it_cites(deployed: Deployed) -> None:
    turn, made = ask(deployed, E20)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert steps(made) == ["answer", "claims", "evaluate"]
    assert {call.outcome for call in made} == {"ok"}
    assert turn.draft is not None
    assert not turn.draft.quoted
    cited = {citation.index: citation.passage for citation in turn.draft.citations if citation.origin == "primary"}
    assert {passage.doc_id for passage in cited.values()} == {"errors_e10_e30.md"}
    for claim in turn.draft.claims:
        assert claim.text in turn.reply.text
        assert (claim.status, set(claim.citations) <= cited.keys()) == ("supported", True)


def test_the_answer_is_verified_and_evaluated_at_the_same_time(deployed: Deployed) -> None:
    with record_steps():
        _, made = ask(deployed, E20, call_ms=300)
    assert {call.step: call.caller for call in made} == {
        "answer": "answer",
        "claims": "verify",
        "evaluate": "self_evaluate",
    }
    at = {call.step: (call.started, call.started + call.milliseconds / 1e3) for call in made}
    assert at["answer"][1] <= min(at["claims"][0], at["evaluate"][0])
    assert max(at["claims"][0], at["evaluate"][0]) < min(at["claims"][1], at["evaluate"][1])


def test_a_question_that_the_documents_do_not_answer_takes_one_call(deployed: Deployed) -> None:
    turn, made = ask(deployed, ABSENT)
    assert (turn.outcome, turn.reason, steps(made)) == ("refused", "llm_self_refusal", ["answer"])


@pytest.mark.parametrize(("asked", "outcome"), [(E20, "answered"), (ABSENT, "failed")])
def test_without_models_the_threshold_of_quotations_decides(deployed: Deployed, asked: Turn, outcome: str) -> None:
    turn, _ = ask(deployed, asked, Fault(kind="500"))
    assert (turn.outcome, turn.degraded) == (outcome, ("answer",))
    assert (turn.draft is not None and turn.draft.quoted) is (outcome == "answered")


@pytest.mark.parametrize(
    ("quality", "expected"),
    [
        ("quick", ["answer", "claims", "evaluate"]),
        ("thorough", ["answer", "claims", "evaluate", "grade"]),
    ],
)
def test_thorough_quality_grades_first_and_asks_the_strong_model(
    deployed: Deployed, quality: Quality, expected: list[str]
) -> None:
    turn, made = ask(deployed, Turn("t", PASSWORD.question, quality=quality))
    assert (turn.outcome, steps(made)) == ("answered", expected)
    assert {call.tier for call in made} == {"strong" if quality == "thorough" else "fast"}


def edited(old: str, new: str) -> str:
    source, times = re.subn(old, lambda _: new, PROFILE, count=1, flags=re.DOTALL)
    assert times == 1
    return source


def profile_at(folder: Path, text: str) -> Path:
    """Write a profile with this text over the deployed pipeline."""
    path = folder / "ask" / "profiles" / "own.yaml"
    path.parent.mkdir(parents=True)
    (folder / "ask" / "ask.yaml").write_bytes(YAML.read_bytes())
    path.write_text(text, encoding="utf-8")
    return path


def followed(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[AskEngine, Turn, tuple[Call, ...]]:
    """Ask the demo question through this profile with simulated models."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with simulator_thread() as (_, url):
        path = profile_at(tmp_path, _MODEL.sub("model: simulated", _ADDRESS.sub(url, source)))
        assert lint_file(path) == []
        with closing(AskEngine(path)) as engine, collect_calls() as calls:
            return engine, engine.run(E20), calls.finished


def test_the_guide_swaps_the_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = edited(r"    fast:\n.*?(?=    strong:)", marked(MODELS, "provider"))
    _, turn, model_calls = followed(source, tmp_path, monkeypatch)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert {call.provider for call in model_calls} == {"openai"}


def test_the_guide_grades_in_every_quality(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, profile = (yaml.safe_load(text) for text in (marked(MODELS, "thorough"), PROFILE))
    for step, change in changes.items():
        profile["components"][step]["init_parameters"] |= change["init_parameters"]
    _, turn, made = followed(yaml.safe_dump(profile, allow_unicode=True), tmp_path, monkeypatch)
    assert (turn.outcome, steps(made)) == ("answered", ["answer", "claims", "evaluate", "grade"])
    assert ("factuality", 80) in {(gate.name, gate.threshold) for gate in turn.verdict.gates}


@pytest.fixture
def rerank(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_RERANK", "true")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    get_settings.cache_clear()
    yield
    monkeypatch.undo()
    get_settings.cache_clear()


@pytest.mark.usefixtures("rerank")
@pytest.mark.parametrize("profile", ["ollama", "openai"])
def test_one_setting_adds_a_step_that_orders_by_meaning(profile: str, tmp_path: Path) -> None:
    with simulator_thread() as (simulator, url):
        path = adapt(tmp_path, url, profile) / "ask" / "profiles" / f"{profile}.yaml"
        with closing(AskEngine(path)) as engine:
            turn, made = ask((engine, simulator), E20)
            failing, _ = ask((engine, simulator), PASSWORD, Fault(kind="500", task="rank"))
        assert isinstance(engine.pipeline.get_component("rerank"), LLMRanker)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert steps(made) == ["answer", "claims", "evaluate", "rerank"]
    assert (failing.outcome, failing.degraded) == ("answered", ("rerank",))

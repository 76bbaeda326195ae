"""The profiles with models, as they are deployed and as the authors' guide edits them, over a real index.

The model server is simulated.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from components.retrieve.model_reranker import ModelReranker
from haystack.tracing.tracer import disable_tracing

from components.judge.claims import check_cited
from components.models.calls import Call, collect_calls
from components.turn import Turn
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs, Task
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask.engine import YAML, AskEngine
from pipelines.lint import lint_file
from settings import ROOT, get_settings

pytestmark = pytest.mark.usefixtures("shop")

Deployed: TypeAlias = tuple[AskEngine, Simulator]
_MODEL = re.compile(r"model: [^\s,}]+")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
GUIDE = (ROOT / "docs/authors.md").read_text(encoding="utf-8")
PROFILE = (YAML.parent / "profiles" / "ollama.yaml").read_text(encoding="utf-8")
E20 = Turn("t", "Стиральная машина показывает ошибку E20, что делать?")
PASSWORD = Turn("t", "Сколько действует ссылка для сброса пароля?")


@pytest.fixture(scope="module", params=["ollama", "openai"])
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with simulator_thread() as (simulator, url), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        pipelines = adapt(tmp_path_factory.mktemp("pipelines"), url, request.param)
        with closing(AskEngine(pipelines / "ask" / "profiles" / f"{request.param}.yaml")) as engine:
            yield engine, simulator
    disable_tracing()


def ask(deployed: Deployed, turn: Turn, *faults: Fault) -> tuple[Turn, tuple[Call, ...]]:
    engine, simulator = deployed
    simulator.knobs = Knobs(faults=faults)
    with collect_calls() as calls:
        return engine.run(turn), calls.finished


def test_an_answer_takes_three_calls_one_after_the_other_and_stands_on_what_it_cites(deployed: Deployed) -> None:
    turn, model_calls = ask(deployed, E20)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert sorted(call.step for call in model_calls) == ["answer", "appraise", "claims", "evaluate"]
    assert all(call.outcome == "ok" for call in model_calls)
    assert turn.draft is not None
    cited = {citation.index: citation.passage for citation in turn.draft.citations}
    for claim in turn.draft.claims:
        assert claim.text in turn.reply.text
        assert check_cited(claim.text, [cited[index] for index in claim.citations]).status == "supported"


def test_a_refusal_calls_no_model(deployed: Deployed) -> None:
    turn, model_calls = ask(deployed, Turn("t", "Что означает ошибка E401 на стиральной машине?"))
    assert (turn.outcome, model_calls) == ("refused", ())


def test_models_read_the_question_as_it_was_meant(deployed: Deployed) -> None:
    turn, model_calls = ask(deployed, Turn("t", "jib,rf t20"))
    assert turn.outcome in {"answered", "low_confidence"}
    assert turn.draft is not None
    assert {citation.passage.doc_id for citation in turn.draft.citations} == {"errors_e10_e30.md"}
    assert model_calls


@pytest.mark.parametrize(
    ("task", "degraded", "step"),
    [
        ("appraise", "appraiser", "appraise"),
        ("review", "verifier", "claims"),
        ("evaluate", "self_evaluator", "evaluate"),
    ],
)
def test_a_judge_that_speaks_another_language_is_asked_twice_and_done_without(
    deployed: Deployed, task: Task, degraded: str, step: str
) -> None:
    turn, model_calls = ask(deployed, E20, Fault(kind="wrong_schema", task=task))
    assert (turn.outcome, turn.degraded) == ("answered", (degraded,))
    assert [call.step for call in model_calls].count(step) == 2


def test_a_second_draft_takes_no_call_more_in_sequence(deployed: Deployed, tmp_path: Path) -> None:
    engine, simulator = deployed
    described = engine.pipeline.to_dict()
    answer, verify = (described["components"][name] for name in ("answer", "verify"))
    verify["init_parameters"]["reviewer"]["init_parameters"]["second"] = {
        **answer,
        "init_parameters": {**answer["init_parameters"], "temperature": 0.9},
    }
    path = tmp_path / "ask.yaml"
    path.write_text(yaml.safe_dump(described), encoding="utf-8")
    with closing(AskEngine(path)) as again:
        turn, model_calls = ask((again, simulator), E20)
    assert turn.outcome == "answered"
    assert turn.draft is not None
    assert turn.draft.agreement == 1.0
    assert "agreement" in {gate.name for gate in turn.verdict.gates}
    assert [call.step for call in model_calls].count("answer") == 2


def guide(name: str) -> str:
    results = re.search(rf"<!-- {name} -->\n```yaml\n(.*?)```\n<!-- /{name} -->", GUIDE, re.DOTALL)
    assert results is not None
    return results.group(1)


def edited(old: str, new: str) -> str:
    source, times = re.subn(old, lambda _: new, PROFILE, count=1, flags=re.DOTALL)
    assert times == 1
    return source


def thorough() -> str:
    """The guide's two lines in place of those of the appraiser, and its judge at the reviewer."""
    judge, threshold = guide("thorough").splitlines(keepends=True)
    old_judge = "          judge: {type: components.judge.llm.LlmJudge, init_parameters: {models: *models}}\n"
    old_threshold = "          threshold: 0.75 # least adequacy to answer\n"
    assert PROFILE.count(old_judge) == 2
    assert PROFILE.count(old_threshold) == 1
    return PROFILE.replace(old_judge, judge).replace(old_threshold, threshold)


def profile_at(folder: Path, text: str) -> Path:
    """A profile of this text over the deployed pipeline."""
    path = folder / "ask" / "profiles" / "own.yaml"
    path.parent.mkdir(parents=True)
    (folder / "ask" / "ask.yaml").write_bytes(YAML.read_bytes())
    path.write_text(text, encoding="utf-8")
    return path


def followed(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[AskEngine, Turn, tuple[Call, ...]]:
    """The demo question through this profile, its models simulated."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with simulator_thread() as (_, url):
        path = profile_at(tmp_path, _MODEL.sub("model: simulated", _ADDRESS.sub(url, source)))
        assert lint_file(path) == []
        with closing(AskEngine(path)) as engine, collect_calls() as calls:
            return engine, engine.run(E20), calls.finished


def test_the_guide_swaps_the_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = edited(r"    fast:\n.*?(?=    strong:)", guide("provider"))
    _, turn, model_calls = followed(source, tmp_path, monkeypatch)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert {call.provider for call in model_calls} == {"openai"}


def test_the_guide_verifies_thoroughly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, turn, model_calls = followed(thorough(), tmp_path, monkeypatch)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert {call.step: call.tier for call in model_calls if call.step != "answer"} == {
        "appraise": "strong",
        "claims": "strong",
        "evaluate": "strong",
    }


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
def test_one_switch_lets_the_models_order_what_was_found(profile: str, tmp_path: Path) -> None:
    with simulator_thread() as (simulator, url):
        path = adapt(tmp_path, url, profile) / "ask" / "profiles" / f"{profile}.yaml"
        with closing(AskEngine(path)) as engine:
            turn, model_calls = ask((engine, simulator), E20)
            failing, _ = ask((engine, simulator), PASSWORD, Fault(kind="500", task="rank"))
        assert isinstance(engine.pipeline.get_component("rerank"), ModelReranker)
    assert (turn.outcome, turn.degraded) == ("answered", ())
    assert [call.step for call in model_calls].count("rerank") == 1
    assert (failing.outcome, failing.degraded) == ("answered", ("reranker",))

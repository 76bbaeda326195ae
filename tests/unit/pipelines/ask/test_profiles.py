"""Every profile is a pipeline file, and a tenant's turns use the chosen profile."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from haystack.tracing.tracer import disable_tracing

from components.judge.evidence_evaluator import RetrievalEvaluator
from components.models.calls import Call
from components.turn import Draft, Turn
from pipelines import definition
from pipelines.ask import profiles
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.engine import AskEngine
from pipelines.ask.profiles import ProfileEngines
from pipelines.ask.steps import Steps, collect_faults
from pipelines.ask.usecase import Ask
from settings import ROOT, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.storage import database

WRITTEN = Call("answer", "ollama", "m", "answer.ru@0", "fast", 0.0, 9.0, "ok", 100, 20, 0.25)


@pytest.fixture(autouse=True)
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna")):
        yield
    database.close_all()
    disable_tracing()
    get_settings.cache_clear()


def test_a_file_in_the_folder_is_a_profile_and_nothing_else_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "pipelines"
    shutil.copytree(ROOT / "pipelines" / "ask", own / "ask", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    own.joinpath("ask", "profiles", "strict.yaml").write_text(
        "components: {evaluate_retrieval: {init_parameters: {threshold: 0.9}}}", encoding="utf-8"
    )
    monkeypatch.setenv("OPORA_PIPELINES_DIR", str(own))
    get_settings.cache_clear()
    policy.change(profile="strict")
    evaluator = AskEngine(profiles.path_of(profiles.chosen())).pipeline.get_component("evaluate_retrieval")
    assert isinstance(evaluator, RetrievalEvaluator)
    assert (evaluator.threshold, evaluator.worth_retrying) == (0.9, 0.25)
    with pytest.raises(Invalid) as refused:
        policy.change(profile="strickt")
    assert refused.value.code == "profile_unknown"
    assert refused.value.params == {"name": "strickt", "names": "embedded, ollama, openai, strict"}
    with pytest.raises(Invalid, match="policy_invalid"):
        policy.change(profile="../../etc")


BASE: definition.Definition = {
    "components": {
        "a": {"type": "x.A", "init_parameters": {"one": 1, "two": {"deep": 2}}},
        "b": {"type": "x.B", "init_parameters": {"one": 1}},
        "join": {"type": "haystack.components.joiners.branch.BranchJoiner"},
    },
    "connections": [{"sender": "a.out", "receiver": "b.in"}, {"sender": "a.out", "receiver": "join.value"}],
}


def test_a_profile_changes_and_replaces_components() -> None:
    laid = definition.with_overlay(
        BASE,
        {
            "models": 1,
            "components": {
                "a": {"init_parameters": {"two": {"deep": 3}}},
                "b": {"type": "x.Other", "init_parameters": {"three": 3}},
            },
        },
    )
    assert laid["components"]["a"]["init_parameters"] == {"one": 1, "two": {"deep": 3}}
    assert laid["components"]["b"] == {"type": "x.Other", "init_parameters": {"three": 3}}
    assert (laid["connections"], "models" in laid) == (BASE["connections"], False)


def test_a_profile_adds_a_step_between_two_others() -> None:
    between = [{"sender": "a.out", "receiver": "new.in"}, {"sender": "new.out", "receiver": "b.in"}]
    laid = definition.with_overlay(BASE, {"components": {"new": {"type": "x.New"}}, "connections": between})
    assert list(laid["components"]) == ["a", "b", "join", "new"]
    assert laid["connections"] == [{"sender": "a.out", "receiver": "join.value"}, *between]


def test_a_socket_that_takes_several_keeps_its_senders() -> None:
    added = {"sender": "b.out", "receiver": "join.value"}
    assert definition.with_overlay(BASE, {"connections": [added]})["connections"] == [*BASE["connections"], added]


def test_a_profile_removes_components_and_connections() -> None:
    cut = {"sender": "a.out", "receiver": "b.in"}
    assert definition.with_overlay(BASE, {"remove": [cut]})["connections"] == BASE["connections"][1:]
    without = definition.with_overlay(BASE, {"remove": ["b"]})
    assert (list(without["components"]), without["connections"]) == (["a", "join"], BASE["connections"][1:])


def test_an_installation_whose_profile_is_unknown_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_PROFILE", "olama")
    get_settings.cache_clear()
    with pytest.raises(Invalid, match="profile_unknown"):
        ProfileEngines()


def test_a_tenant_has_its_own_profile_or_the_installation_s(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profiles.chosen() == "embedded"
    engines = ProfileEngines()
    own = engines.digest
    policy.change(profile="ollama")
    assert profiles.chosen() == "ollama"
    assert engines.digest != own
    policy.change(profile="")
    assert engines.digest == own
    monkeypatch.setenv("OPORA_PROFILE", "openai")
    get_settings.cache_clear()
    assert profiles.chosen() == "openai"


def test_a_mistake_in_the_installation_s_own_file_shows_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ask").mkdir()
    (tmp_path / "ask" / "ask.yaml").write_text("components: {guard: {type: os.system}}\nconnections: []\n")
    monkeypatch.setenv("OPORA_PIPELINES_DIR", str(tmp_path))
    get_settings.cache_clear()
    with pytest.raises(Invalid, match="pipeline_faulty"):
        ProfileEngines()


@pytest.fixture
def misspelt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a profile with a misspelt key to the installation."""
    own = tmp_path / "pipelines"
    shutil.copytree(ROOT / "pipelines" / "ask", own / "ask", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (own / "ask" / "profiles" / "newest.yaml").write_text("conections: []")
    monkeypatch.setenv("OPORA_PIPELINES_DIR", str(own))
    get_settings.cache_clear()


@pytest.mark.usefixtures("misspelt")
def test_a_profile_with_a_misspelt_key_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_PROFILE", "newest")
    get_settings.cache_clear()
    with pytest.raises(Invalid) as refused:
        ProfileEngines()
    assert "conections" in str(refused.value.params["fault"])


@pytest.mark.usefixtures("misspelt")
def test_a_faulty_profile_of_a_tenant_fails_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    policy.change(profile="newest")
    ask = Ask()
    with collect_faults() as faults:
        turn = ask.turn(AskRequest(question="Где заказ?"))
    assert (turn.outcome, turn.reason, ask.engine.digest) == ("failed", "pipeline_error", "")
    for told in (caplog.text, *faults):
        assert "newest.yaml" in told
        assert "conections" in told
    assert faults


def answer(*made: Call, degraded: tuple[str, ...] = (), quoted: bool = False) -> TurnAnswer:
    draft = Draft("", (), (), quoted=quoted)
    turn = Turn("t", "q", outcome="answered", draft=draft, degraded=degraded)
    steps = Steps()
    steps.calls = made
    return answer_of(turn, steps=steps)


def failed(step: str, outcome: str) -> Call:
    return Call(step, "ollama", "m", "p.ru@0", "fast", 0.0, 1.0, outcome)  # type: ignore[arg-type]


def test_an_answer_says_who_wrote_it_and_what_it_cost() -> None:
    judged = Call("evaluate", "openai", "j", "evaluate.ru@1", "fast", 0.0, 9.0, "ok", 50, 5, 0.125)
    meta = answer(judged, WRITTEN, failed("claims", "open_circuit")).meta
    assert (meta.provider, meta.model, meta.llm_calls, meta.cost_usd) == ("ollama", "m", 2, 0.375)
    assert meta.tokens == {"prompt": 150, "completion": 25, "total": 175}
    assert meta.prompt_version == "evaluate.ru@1, answer.ru@0"
    assert meta.degraded == ()


def test_a_model_that_another_stood_in_for_is_told_of() -> None:
    assert answer(failed("answer", "timeout"), WRITTEN).meta.degraded == ("answer",)


def test_a_quoted_answer_is_nobody_s() -> None:
    meta = answer(failed("answer", "timeout"), degraded=("answer",), quoted=True).meta
    assert (meta.provider, meta.model, meta.llm_calls, meta.degraded) == ("local", "extractive", 1, ("answer",))
    meta = answer(quoted=True).meta
    assert (meta.llm_calls, meta.tokens, meta.cost_usd, meta.prompt_version) == (0, {}, None, "")

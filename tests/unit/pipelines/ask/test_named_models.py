"""The models of profiles: named without secrets, called once each, each failure with its reason."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest
import yaml
from typer.testing import CliRunner

from cli import app
from components.embed.dense import LOCAL_OLLAMA
from components.language.texts import LOCALES
from components.models import breaker
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask import model_checks, named_models
from pipelines.ask.model_checks import Fault as ModelFault
from pipelines.ask.model_checks import ModelResult, explained
from pipelines.ask.model_servers import lack
from pipelines.ask.named_models import NamedModel, _named
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tests.pages import PIPELINES, edits, profile
from tests.servers import replying

pytestmark = pytest.mark.usefixtures("installation")


@pytest.fixture
def acme(installation: Settings) -> Iterator[Tenant]:
    """A tenant; no provider was called yet."""
    Registry(installation).add("acme", name="Acme", locale="en")
    breaker._UPSTREAMS.clear()
    with acting_as(Tenant("acme", "admin")) as tenant:
        yield tenant
    breaker._UPSTREAMS.clear()


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch, acme: Tenant) -> Iterator[Simulator]:
    """An Ollama server with both language models of the profile, and an embedder of another size."""
    with simulator_thread(Knobs(models=("qwen3:4b-instruct", "qwen3:30b-instruct"), dimensions=384)) as (
        simulator,
        url,
    ):
        monkeypatch.setenv("OPORA_OLLAMA_URL", url)
        # Its ingest profile is the one with the server's embedder.
        monkeypatch.setenv("OPORA_PROFILE", "ollama")
        get_settings.cache_clear()
        yield simulator
    get_settings.cache_clear()


def test_a_profile_names_its_models_and_their_files(acme: Tenant) -> None:
    profiles = {one.name: one for one in named_models.listed()}
    assert set(profiles) == {"embedded", "ollama", "openai"}
    assert not profiles["embedded"].has_language_model
    chat = [one for one in profiles["ollama"].models if one.kind == "chat"]
    assert [(one.role, one.provider, one.name) for one in chat] == [
        ("fast", "ollama", "qwen3:4b-instruct"),
        ("strong", "ollama", "qwen3:30b-instruct"),
    ]
    assert {(one.address, one.file) for one in chat} == {("http://127.0.0.1:11434", "ask/profiles/ollama.yaml")}
    with pytest.raises(NotFound):
        named_models.profile("unheard-of")


def test_generators_of_stock_components_are_tested_too(ollama: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ((_, _, old, new),) = edits(PIPELINES)
    text = profile("builder").replace(f"{old}\n", new).replace(LOCAL_OLLAMA, get_settings().ollama_url)
    steps = yaml.safe_load(text)["components"]
    fast, chained = named_models._chat_models(steps, "f")
    assert (fast.role, chained.role, chained.name) == ("fast", "stock", "gpt-4.1-mini")
    failed = model_checks.check_one(chained, 5)
    assert (failed.fault, model_checks.status(failed, [failed])) == ("key_missing", "problem")
    ranker = {"type": "a.LLMRanker", "init_parameters": {"chat_generator": fast.description}}
    (alone,) = named_models._chat_models({"rank": ranker}, "f")
    assert (alone.role, model_checks.check_one(alone, 5).fault) == ("stock", None)


def test_a_ranking_model_is_named_and_tested() -> None:
    kind = "haystack_integrations.components.rankers.fastembed.ranker.FastembedRanker"
    steps = {
        "rerank": {"type": kind, "init_parameters": {"model_name": "nobody/none", "local_files_only": True}},
        "rank": {"type": "components.retrieve.reranker.FeatureRanker", "init_parameters": {"trust_weight": 0.5}},
    }
    (named,) = named_models._rankers(steps, "f")
    assert (named.kind, named.provider, named.name) == ("ranker", "fastembed", "nobody/none")
    assert model_checks.check_one(named, 5).fault is not None


def test_an_address_is_shown_without_secrets() -> None:
    url = "https://user:hush@models.example:8443/v1?key=hush"
    shown = _named("chat", "fast", {"type": "a.OllamaChatGenerator", "init_parameters": {"url": url}}, "f", {})
    assert shown.address == "https://models.example:8443/v1"


def test_a_test_measures_models_and_checks_their_forms(ollama: Simulator) -> None:
    ollama.set_knobs(ollama.knobs.model_copy(update={"first_token_ms": 100, "tokens_per_second": 50}))
    results = {one.model.role: one for one in checked("ollama")}
    assert {role: one.fault for role, one in results.items()} == {
        "fast": None,
        "strong": None,
        "embedder": "dimensions_foreign",
    }
    assert results["fast"].first_token_ms >= 100
    assert results["fast"].tokens_per_second > 0
    assert results["embedder"].dimensions == 384
    fault = explained(results["embedder"], "en")
    assert "384 numbers" in fault
    assert "bge-m3 has 1024" in fault
    assert "ingest/profiles/ollama.yaml" in fault


def test_the_rate_counts_tokens_after_the_first() -> None:
    measured = model_checks._Pace(started_at=10.0, times=[10.5, 10.75, 11.0, 11.5]).measured()
    assert measured == {"first_token_ms": 500.0, "tokens_per_second": 3.0}


def test_a_name_without_a_tag_means_the_latest(ollama: Simulator) -> None:
    embedder = next(one for one in named_models.profile("ollama").models if one.kind == "embedder")
    for listed in ("bge-m3", "bge-m3:latest"):
        ollama.set_knobs(Knobs(models=(listed,)))
        assert lack(embedder, 5) is None
    ollama.set_knobs(Knobs(models=("bge-m3:567m",)))
    assert lack(embedder, 5) == "model_missing"


def test_a_model_that_ignores_the_schema_is_named(ollama: Simulator) -> None:
    faults = (Fault(kind="wrong_schema", model="qwen3:4b-instruct", after=1),)
    ollama.set_knobs(ollama.knobs.model_copy(update={"faults": faults}))
    results = {one.model.role: one.fault for one in checked("ollama")}
    assert (results["fast"], results["strong"]) == ("schema_ignored", None)


def test_a_model_that_is_not_pulled_comes_with_the_command(ollama: Simulator) -> None:
    ollama.set_knobs(Knobs(models=("qwen3:4b-instruct",)))
    results = {one.model.role: (one.fault, one.command) for one in checked("ollama")}
    assert results["strong"] == ("model_missing", "ollama pull qwen3:30b-instruct")
    assert results["fast"] == (None, "")


def test_a_model_that_loads_slowly_passes(ollama: Simulator) -> None:
    ollama.set_knobs(ollama.knobs.model_copy(update={"loading_ms": 1_500}))
    models = named_models.profile("ollama")
    around = {**models.models[0].around}
    around["init_parameters"] = {**around["init_parameters"], "timeout": 1.0}
    hurried = [replace(one, around=around) if one.kind == "chat" else one for one in models.models]
    results = model_checks.check(replace(models, models=tuple(hurried)), seconds=30)
    assert {one.fault for one in results if one.model.kind == "chat"} == {None}
    assert breaker.open_now() == 0


def test_what_does_not_answer_says_why(acme: Tenant, monkeypatch: pytest.MonkeyPatch, nowhere: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keyless = {one.model.role: one for one in checked("openai")}
    assert (keyless["fast"].fault, keyless["fast"].command) == ("key_missing", "export OPENAI_API_KEY=…")
    monkeypatch.setenv("OPORA_OLLAMA_URL", f"http://user:hush@{nowhere}")
    get_settings.cache_clear()
    down = {one.model.role: one for one in checked("ollama")}
    assert (down["strong"].fault, down["strong"].command) == ("unreachable", "ollama serve")
    assert "hush" not in explained(down["strong"], "ru")
    assert nowhere in explained(down["strong"], "ru")
    get_settings.cache_clear()


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [(404, b"no such page", "not_ollama"), (200, b"<html>", "not_ollama"), (502, b"", "server_error")],
)
def test_another_server_at_the_address_of_ollama_is_named(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, fault: str
) -> None:
    with replying(status, body) as url:
        monkeypatch.setenv("OPORA_OLLAMA_URL", url)
        get_settings.cache_clear()
        fast = next(one for one in checked("ollama") if one.model.role == "fast")
    get_settings.cache_clear()
    assert (fast.fault, fast.command) == (fault, "")
    words = explained(fast, "en")
    assert url in words
    assert ("OPORA_OLLAMA_URL" in words) == (fault == "not_ollama")
    assert "key" not in words


def test_a_server_of_the_openai_protocol_is_asked_for_its_models(monkeypatch: pytest.MonkeyPatch, nowhere: str) -> None:
    monkeypatch.setenv("OWN_KEY", "k")
    with simulator_thread(Knobs(models=("gemma",))) as (_, url):
        found = [lack(openai_model(name, f"{url}/v1"), 5) for name in ("gemma", "llama")]
    assert found == [None, "model_missing"]
    assert lack(openai_model("gemma", f"http://{nowhere}/v1"), 5) == "unreachable"
    monkeypatch.delenv("OWN_KEY")
    assert lack(openai_model("gemma", "http://127.0.0.1/v1"), 5) == "key_missing"


def openai_model(name: str, url: str) -> NamedModel:
    key = {"type": "env_var", "env_vars": ["OWN_KEY"], "strict": False}
    parameters = {"model": name, "api_base_url": url, "api_key": key}
    return _named("chat", "fast", {"type": "a.OpenAIChatGenerator", "init_parameters": parameters}, "f", {})


def checked(profile: str) -> tuple[ModelResult, ...]:
    return model_checks.check(named_models.profile(profile), seconds=30)


def test_the_encoder_in_the_service_is_there_or_is_not(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("OPORA_MODELS_DIR", str(tmp_path_factory.mktemp("none")))
    get_settings.cache_clear()
    embedded = named_models.profile("embedded")
    assert not embedded.encoder_present
    assert [one.fault for one in model_checks.check(embedded)] == ["files_missing"]
    get_settings.cache_clear()


def test_the_command_shows_the_same(ollama: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    ollama.set_knobs(Knobs(models=("qwen3:4b-instruct",), dimensions=384))
    arguments = ["models", "test", "ollama", "--tenant", "acme"]
    shown = CliRunner().invoke(app, [*arguments, "--json"])
    assert shown.exit_code == 1
    assert {one["role"]: one["fault"] for one in json.loads(shown.stdout)} == {
        "fast": None,
        "strong": "model_missing",
        "embedder": "dimensions_foreign",
    }
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert "→ ollama pull qwen3:30b-instruct" in shown.stdout
    ollama.set_knobs(Knobs(models=("qwen3:4b-instruct",), dimensions=1024))
    shown = CliRunner().invoke(app, [*arguments, "--json"])
    assert shown.exit_code == 0
    assert [one["status"] for one in json.loads(shown.stdout)] == ["ok", "warning", "ok"]
    ollama.set_knobs(Knobs(models=(), dimensions=1024))
    assert CliRunner().invoke(app, arguments).exit_code == 1


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("fault", [one for part in get_args(ModelFault) for one in get_args(part) if one != "ok"])
def test_each_reason_has_its_words(fault: ModelFault, locale: str) -> None:
    result = ModelResult(openai_model("gemma", "http://models.example/v1"), 1, fault, dimensions=3)
    assert explained(result, locale)

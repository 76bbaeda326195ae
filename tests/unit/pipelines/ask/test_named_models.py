"""The models of profiles: named without secrets, called once each, each failure with its reason."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from typer.testing import CliRunner

from cli import app
from components.language.texts import LOCALES, text
from components.models import breaker
from components.models.failures import ModelFailed
from pipelines.ask import named_models
from pipelines.ask.named_models import _named
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound

pytestmark = pytest.mark.usefixtures("installation")


@pytest.fixture
def acme(installation: Settings) -> Iterator[Tenant]:
    """A tenant; no provider was called yet."""
    Registry(installation).add("acme", name="Acme", locale="en")
    breaker._UPSTREAMS.clear()
    with acting_as(Tenant("acme", "admin")) as tenant:
        yield tenant
    breaker._UPSTREAMS.clear()


class _Ollama(BaseHTTPRequestHandler):
    """Answers as Ollama does: a word, or the vectors of texts."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": "OK"}
        chat = {"model": asked["model"], "message": message, "done": True, "done_reason": "stop"}
        chat |= {"prompt_eval_count": 5, "eval_count": 1, "created_at": "2026-01-01T00:00:00Z"}
        vectors = {"model": asked["model"], "embeddings": [[0.1] * 1024]}
        body = json.dumps(chat if self.path == "/api/chat" else vectors).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch, acme: Tenant) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Ollama)
    running = Thread(target=server.serve_forever, daemon=True)
    running.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("OPORA_OLLAMA_URL", address)
    # Its ingest profile is the one with the server's embedder.
    monkeypatch.setenv("OPORA_PROFILE", "ollama")
    get_settings.cache_clear()
    yield address
    server.shutdown()
    server.server_close()
    running.join()
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


def test_an_address_is_shown_without_secrets() -> None:
    url = "https://user:hush@models.example:8443/v1?key=hush"
    shown = _named("chat", "fast", {"type": "a.OllamaChatGenerator", "init_parameters": {"url": url}}, "f", {})
    assert shown.address == "https://models.example:8443/v1"


def test_models_that_answer_do(ollama: str) -> None:
    results = named_models.tested(named_models.profile("ollama"))
    assert {one.model.role: one.fault for one in results} == {"fast": None, "strong": None, "embedder": None}
    assert {one.model.address for one in results} == {ollama}


def test_what_does_not_answer_says_why(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    results = {one.model.role: one.fault for one in named_models.tested(named_models.profile("openai"))}
    assert (results["fast"], results["strong"]) == ("key_missing", "key_missing")
    monkeypatch.setenv("OPORA_OLLAMA_URL", "http://127.0.0.1:9")
    get_settings.cache_clear()
    results = {one.model.role: one.fault for one in named_models.tested(named_models.profile("ollama"))}
    assert (results["fast"], results["strong"]) == ("refused", "refused")
    get_settings.cache_clear()


def test_the_encoder_in_the_service_is_there_or_is_not(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("OPORA_MODELS_DIR", str(tmp_path_factory.mktemp("none")))
    get_settings.cache_clear()
    embedded = named_models.profile("embedded")
    assert not embedded.encoder_present
    assert [one.fault for one in named_models.tested(embedded)] == ["files_missing"]
    get_settings.cache_clear()


def test_the_command_shows_the_same(acme: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(model: named_models.NamedModel) -> None:
        raise ModelFailed("timeout")

    monkeypatch.setattr(named_models, "_ask", down)
    monkeypatch.setattr(named_models, "_embed", lambda model: None)
    arguments = ["models", "test", "ollama", "--tenant", "acme"]
    shown = CliRunner().invoke(app, [*arguments, "--json"])
    assert shown.exit_code == 1
    assert {one["role"]: one["fault"] for one in json.loads(shown.stdout)} == {
        "fast": "timeout",
        "strong": "timeout",
        "embedder": None,
    }
    assert CliRunner().invoke(app, ["models", "test", "embedded", "--tenant", "acme"]).exit_code == 0


def test_each_reason_has_its_words() -> None:
    faults = ("timeout", "refused", "server_error", "rate_limited", "malformed", "empty", "stopped", "too_dear")
    for fault in (*faults, "open_circuit", "busy", "key_missing", "files_missing", "unavailable"):
        for locale in LOCALES:
            assert text(f"models.fault.{fault}", locale)

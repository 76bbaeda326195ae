"""Embedders by their real loading path, offline: models on disk, a server, and failures of both."""

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from haystack import Pipeline
from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder
from haystack_integrations.components.embedders.ollama import OllamaDocumentEmbedder, OllamaTextEmbedder
from hypothesis import given
from hypothesis import strategies as st

from components.embed import dense
from components.embed.dense import EmbeddingFailed, embed_passages, embed_question, settings_of
from components.embed.fast import FastEmbedder
from components.embed.protocol import Embedder
from components.embed.stock import StockEmbedder
from components.ingest.write import ChunkWriter
from components.language.encoder_settings import DenseSettings, EncoderSettings, settings_from
from components.models import breaker
from components.retrieve.cache import TenantLruCache
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.running import simulator_thread
from settings import ROOT, Settings
from tenants.core.context import Tenant, acting_as
from tests.encoders import DIMENSIONS, ENCODER, FILE, SYNONYMS, encoder, lay_out
from tests.service.serving import in_force


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    lay_out(folder, ENCODER, encoder())
    return folder


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset breakers and cached questions of the process before each test."""
    monkeypatch.setattr(dense, "_QUESTIONS", TenantLruCache(10))
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    with acting_as(Tenant("acme", "anna")):
        yield


@pytest.fixture
def tiny(models: Path) -> FastEmbedder:
    return FastEmbedder(ENCODER, DIMENSIONS, file=FILE, cache_dir=str(models), threads=1)


def cosine(one: object, other: object) -> float:
    assert isinstance(one, list)
    assert isinstance(other, list)
    return float(sum(a * b for a, b in zip(one, other, strict=True)))


@given(st.sampled_from(SYNONYMS), st.sampled_from(SYNONYMS), st.data())
def test_meaning_outweighs_shared_words(
    models: Path, group: tuple[str, ...], other: tuple[str, ...], data: st.DataObject
) -> None:
    tiny = FastEmbedder(ENCODER, DIMENSIONS, file=FILE, cache_dir=str(models), threads=1)
    word, passage = data.draw(st.sampled_from(group)), data.draw(st.sampled_from(other))
    (vector,) = tiny.passages([f"Про {passage}"])
    assert (cosine(tiny.question(f"Где {word}?"), vector) > 0.9) == (group == other)


def test_questions_and_passages_have_their_own_prefix(models: Path) -> None:
    def embedder(question: str = "", passage: str = "") -> FastEmbedder:
        return FastEmbedder(ENCODER, DIMENSIONS, question, passage, FILE, cache_dir=str(models), threads=1)

    plain, prefixed = embedder(), embedder("насос ", "пароль ")
    assert prefixed.question("возврат") == plain.question("насос возврат")
    assert prefixed.passages(["возврат"]) == plain.passages(["пароль возврат"])


def test_embedders_survive_yaml_and_the_index(tiny: FastEmbedder) -> None:
    stock = StockEmbedder(MockDocumentEmbedder(dimension=4), MockTextEmbedder(dimension=4), "mock", 4)
    embedders: tuple[Embedder, ...] = (tiny, stock)
    for embedder in embedders:
        pipeline = Pipeline()
        pipeline.add_component("writer", ChunkWriter({"k1": 1.5}, embedder))
        again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
        assert again.dumps() == pipeline.dumps()
        settings = again.get_component("writer").settings  # type: ignore[attr-defined]
        assert settings_from(settings.json_form) == settings
        assert (settings.dense, settings.dimensions) == (settings_of(embedder), embedder.dimensions)


def test_the_embedder_that_was_stored_encodes_the_question(tiny: FastEmbedder) -> None:
    settings = DenseSettings.model_validate_json(settings_of(tiny).json_form)
    assert embed_question("возврат", settings) == tiny.question("возврат")
    assert embed_passages(["возврат"] * 70, settings) == [*tiny.passages(["возврат"] * 70)]
    assert embed_passages([], settings) == []


def test_an_index_follows_the_address_of_ollama(tmp_path: Path) -> None:
    """An index searched by words only, until it was rebuilt, once `OPORA_OLLAMA_URL` alone had changed."""

    def settings_at(url: str) -> EncoderSettings:
        by_ollama = OllamaDocumentEmbedder("bge-m3", url=url), OllamaTextEmbedder("bge-m3", url=url)
        return EncoderSettings(dense=settings_of(StockEmbedder(*by_ollama, "bge-m3", 384)))

    with in_force(Settings(data_dir=tmp_path, ollama_url="http://127.0.0.1:9")):
        stored = settings_at("http://127.0.0.1:9").json_form
    with (
        simulator_thread(Knobs(dimensions=384)) as (_, url),
        in_force(Settings(data_dir=tmp_path, ollama_url=url)),
    ):
        settings = settings_from(stored)
        assert settings == settings_at(url)
        assert settings.dense is not None
        assert len(embed_question("возврат", settings.dense)) == 384


def stock(passages: list[float], question: list[float], dimensions: int = 2) -> DenseSettings:
    return settings_of(StockEmbedder(MockDocumentEmbedder(passages), MockTextEmbedder(question), "mock", dimensions))


@pytest.mark.parametrize("vector", [[1.0], [1.0, 0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_vectors_that_no_index_could_hold_are_a_failure(vector: list[float]) -> None:
    # Written by hand: a vector that is not finite has no place in JSON.
    with pytest.raises((ValueError, EmbeddingFailed), match=r"vector|embedding_differs"):
        dense._checked([vector], 1, stock([1.0, 0.0], [1.0, 0.0]))
    if len(vector) != 2:
        with pytest.raises(EmbeddingFailed):
            embed_passages(["a"], stock(vector, vector))
        with pytest.raises(EmbeddingFailed):
            embed_question("a", stock(vector, vector))


def test_a_missing_vector_is_a_failure() -> None:
    with pytest.raises(ValueError, match="vectors for 2 texts"):
        dense._checked([[1.0, 0.0]], 2, stock([1.0, 0.0], [1.0, 0.0]))


def test_missing_files_are_a_failure_that_the_log_explains(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    missing = settings_of(FastEmbedder("nobody/has-it", 8, file=FILE, cache_dir=str(tmp_path)))
    with caplog.at_level(logging.ERROR, "opora"), pytest.raises(EmbeddingFailed):
        embed_passages(["секретный документ"], missing)
    assert f"nobody/has-it cannot be loaded: its files are missing or damaged in {tmp_path}" in caplog.text
    assert "секретный" not in caplog.text


def test_a_question_is_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = stock([1.0, 0.0], [0.0, 1.0])
    assert embed_question("вопрос", settings) == [0.0, 1.0]
    monkeypatch.setattr(dense, "_embedder", None)
    assert embed_question("вопрос", settings) == [0.0, 1.0]


def test_failures_of_one_tenant_pause_no_search_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, asked = stock([1.0, 0.0], [0.0, 1.0]), list[str]()

    class Slow:
        def question(self, text: str) -> list[float]:
            asked.append(text)
            if text.startswith("long"):
                raise OSError
            return [0.0, 1.0]

    monkeypatch.setattr(dense, "_embedder", lambda _: Slow())
    for number in range(5):
        with pytest.raises(EmbeddingFailed):
            embed_question(f"long {number}", settings)
    assert len(asked) == dense.FAILURES
    with acting_as(Tenant("globex", "boris")):
        assert embed_question("short", settings) == [0.0, 1.0]
    with pytest.raises(EmbeddingFailed):
        embed_question("its own pause", settings)


def test_only_our_modules_and_haystacks_are_loaded_from_an_index() -> None:
    settings = DenseSettings(space="x", dimensions=2, embedder={"type": "os.path.join", "init_parameters": {}})
    with pytest.raises(EmbeddingFailed):
        embed_passages(["a"], settings)


def test_no_secret_is_kept_with_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    embedder = StockEmbedder(OpenAIDocumentEmbedder(), OpenAITextEmbedder(), "text-embedding-3-small", 1536)
    settings = settings_of(embedder)
    assert "OPENAI_API_KEY" in settings.json_form
    assert "sk-secret" not in settings.json_form
    assert json.loads(settings.json_form)["embedder"] == settings.embedder


def test_model_libraries_are_imported_only_when_a_model_is_loaded() -> None:
    """A service without vectors does not load these libraries, and runs without the extra."""
    heavy = {"fastembed", "onnxruntime", "tokenizers", "huggingface_hub"}
    at_once = {
        f"{path.relative_to(ROOT)} imports {name}"
        for room in ("components", "pipelines", "tenants")
        for path in (ROOT / room).rglob("*.py")
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        for name in _imported(statement)
        if name.split(".")[0] in heavy
    }
    assert at_once == set()
    assert list(_imported(ast.parse("from fastembed import TextEmbedding").body[0])) == ["fastembed"]


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        yield statement.module or ""

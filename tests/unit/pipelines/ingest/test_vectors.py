"""Dense vectors in ingestion and rebuild: written with the chunks, complete, and computed only once."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from haystack.core.errors import PipelineRuntimeError

from components.embed import dense
from components.embed.dense import EmbeddingFailed, embed_question
from components.embed.fast import FastEmbedder
from components.embed.protocol import Embedder
from components.ingest import encode
from components.ingest.document import SourceDocument
from components.language.encoder import encode_query
from components.language.encoder_settings import DenseSettings, settings_from
from components.language.texts import keys
from components.models import breaker
from components.retrieve.cache import TenantLruCache
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import ROOT
from tenants.core.context import Tenant
from tenants.core.points import Dense
from tenants.index import DENSE, SPARSE, access, open_collection
from tenants.knowledge import documents, generations, lexicon
from tests.encoders import DIMENSIONS, ENCODER, FILE, encoder, lay_out, with_embedder
from tests.unit.pipelines.ingest.stored import check_consistent

YAML = (ROOT / "pipelines/ingest/ingest.yaml").read_text(encoding="utf-8")
EMBEDDER = """      embedder:
        type: components.embed.fast.FastEmbedder
        init_parameters:
          {{model: {model}, dimensions: {dimensions}, file: {file}, cache_dir: {folder}, threads: 1{more}}}
"""
WIDER = "opora-tests/wider-encoder"
ARTICLES = [
    SourceDocument("refund", "Возврат", "Возврат возможен в течение 14 дней.", "refund.md"),
    SourceDocument("pump", "Насос", "Насос служит пять лет.", "pump.md"),
    SourceDocument("password", "Пароль", "Пароль меняют в профиле.", "password.md"),
]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "IN_FLIGHT", timedelta(0))
    monkeypatch.setattr(dense, "_QUESTIONS", TenantLruCache(10))
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    lay_out(folder, ENCODER, encoder())
    lay_out(folder, WIDER, encoder(DIMENSIONS + 4))
    return folder


@pytest.fixture(scope="module")
def with_vectors(models: Path) -> Ingest:
    return pipeline(models)


def pipeline(models: Path, model: str = ENCODER, dimensions: int = DIMENSIONS, text: str = YAML) -> Ingest:
    """Return the ingest pipeline with an embedder for its writer."""
    block = EMBEDDER.format(model=model, dimensions=dimensions, file=FILE, folder=models, more="")
    path = models / "ingest.yaml"
    path.write_text(with_embedder(text, block), encoding="utf-8")
    return Ingest(path)


def nearest(question: str) -> str:
    """Return the document nearest to the question's vector, in the current generation."""
    collection = open_collection()
    settings = settings_from(collection.encoder).dense
    assert settings is not None
    hits = collection.search({DENSE: embed_question(question, settings)}, limit=1)[DENSE]
    meta = hits[0].payload["meta"]
    assert isinstance(meta, dict)
    return str(meta["doc_id"])


def test_chunks_are_written_with_their_vectors(tenant: Tenant, with_vectors: Ingest) -> None:
    with_vectors.run(ARTICLES)
    assert [nearest(question) for question in ("Как отдать?", "Помпа", "password")] == ["refund", "pump", "password"]
    assert all(hit.dense for hit in open_collection().scan(dense=True))
    changed = [SourceDocument("pump", "Доставка", "Курьер приедет завтра.", "pump.md")]
    assert with_vectors.run(changed).updated == 1
    assert nearest("delivery") == "pump"
    check_consistent()


def test_a_rebuild_adds_vectors_and_a_rollback_removes_them(
    tenant: Tenant, ingest: Ingest, with_vectors: Ingest
) -> None:
    ingest.run(ARTICLES)
    with_vectors.run([SourceDocument("late", "Гарантия", "Гарантия два года.", "late.md")])
    assert open_collection().dimensions == 0
    with_vectors.rebuild().finish()
    assert open_collection().dimensions == DIMENSIONS
    assert [nearest(question) for question in ("Как отдать?", "warranty")] == ["refund", "late"]
    ingest.run([SourceDocument("later", "Доставка", "Доставка бесплатна.", "later.md")])
    assert nearest("delivery") == "later"
    with_vectors.rollback().finish()
    assert open_collection().dimensions == 0
    check_consistent()


def test_a_missing_model_means_lexical_search_and_a_later_rebuild(
    tenant: Tenant, models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    block = EMBEDDER.format(model=ENCODER, dimensions=DIMENSIONS, file=FILE, folder=tmp_path, more=", required: false")
    path = tmp_path / "ingest.yaml"
    path.write_text(with_embedder(YAML, block), encoding="utf-8")
    without = Ingest(path)
    without.run(ARTICLES)
    assert (without.encoder.dense, open_collection().dimensions, without.rebuild_due()) == (None, 0, False)
    lay_out(tmp_path, ENCODER, encoder())
    later = Ingest(path)
    with caplog.at_level(logging.WARNING, "opora"):
        later.warm_up()
    assert later.rebuild_due()
    assert "opora index rebuild --tenant acme" in caplog.text
    later.rebuild().finish()
    assert not later.rebuild_due()
    assert nearest("Как отдать?") == "refund"


def test_a_model_of_another_revision_is_not_asked(tenant: Tenant, with_vectors: Ingest, models: Path) -> None:
    with_vectors.run(ARTICLES)
    settings = settings_from(open_collection().encoder).dense
    assert settings is not None
    dense._embedder.cache_clear()
    revision = models / f"models--{ENCODER.replace('/', '--')}" / "refs" / "main"
    known = revision.read_text()
    try:
        revision.write_text("2")
        with pytest.raises(EmbeddingFailed):
            embed_question("Как отдать?", settings)
    finally:
        revision.write_text(known)


def test_a_model_is_switched_under_those_who_search(tenant: Tenant, with_vectors: Ingest, models: Path) -> None:
    with_vectors.run(ARTICLES)
    before = open_collection()
    pipeline(models, WIDER, DIMENSIONS + 4).rebuild().finish()
    assert (before.dimensions, open_collection().dimensions) == (DIMENSIONS, DIMENSIONS + 4)
    assert [nearest(question) for question in ("Как отдать?", "помпа")] == ["refund", "pump"]
    settings = settings_from(before.encoder).dense
    assert settings is not None
    result = before.search({DENSE: embed_question("помпа", settings)}, limit=1)[DENSE]
    assert result[0].score > 0.9


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All passages that were embedded, in order."""
    texts: list[str] = []
    embed = dense.embed_passages

    def counting(passages: Sequence[str], settings: DenseSettings) -> list[Dense]:
        texts.extend(passages)
        return embed(passages, settings)

    monkeypatch.setattr(encode, "embed_passages", counting)
    return texts


def test_only_what_is_new_is_embedded(tenant: Tenant, with_vectors: Ingest, models: Path, embedded: list[str]) -> None:
    with_vectors.run(ARTICLES)
    assert len(embedded) == len(ARTICLES)
    embedded.clear()
    with_vectors.run(ARTICLES)
    assert embedded == []


def test_keywords_of_a_document_are_searched(tenant: Tenant, with_vectors: Ingest, embedded: list[str]) -> None:
    with_vectors.run(ARTICLES)
    embedded.clear()
    keywords = replace(ARTICLES[1], meta={"keywords": ["курьер", "слив"]})
    assert with_vectors.run([ARTICLES[0], keywords, ARTICLES[2]]).updated == 1
    assert embedded == ["Насос, курьер, слив\nНасос служит пять лет."]
    assert nearest("delivery") == "pump"
    assert "слив" in lexicon.current().stems
    collection = open_collection()
    by_words = collection.search({SPARSE: encode_query("слив", settings_from(collection.encoder))}, limit=1)[SPARSE]
    assert [hit.id for hit in by_words] == list(documents.find(["pump"])["pump"].chunk_ids)
    check_consistent()


def test_a_rebuild_embeds_everything_again(
    tenant: Tenant, with_vectors: Ingest, models: Path, embedded: list[str]
) -> None:
    """The server of the model had changed: its old vectors were copied, and no search by meaning fitted them."""
    with_vectors.run(ARTICLES)
    for settings in (YAML, YAML.replace("gram_sizes: [3, 4]", "gram_sizes: [2]")):
        embedded.clear()
        pipeline(models, text=settings).rebuild().finish()
        assert len(embedded) == len(ARTICLES)


def test_a_document_changed_during_a_rebuild_is_embedded_again(
    tenant: Tenant, with_vectors: Ingest, embedded: list[str]
) -> None:
    with_vectors.run(ARTICLES)
    embedded.clear()
    rebuild = with_vectors.rebuild().steps()
    next(rebuild)
    Library(with_vectors.rewrite).change("pump", {"title": "Доставка"})
    changed = len(embedded)
    list(rebuild)
    assert len(embedded) == changed + 1


def test_an_operator_may_change_documents_while_others_are_embedded(
    tenant: Tenant, with_vectors: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_vectors.run(ARTICLES)
    library = Library(with_vectors.rewrite)
    embed = dense.embed_passages
    waiting = [{"title": "Доставка"}]

    def changing(passages: Sequence[str], settings: DenseSettings) -> list[Dense]:
        while waiting:
            with ThreadPoolExecutor(1) as operator:
                operator.submit(copy_context().run, library.change, "pump", waiting.pop()).result()
        return embed(passages, settings)

    monkeypatch.setattr(encode, "embed_passages", changing)
    edited = SourceDocument("pump", "Насос", "Звоните нам по телефону.", "pump.md")
    with_vectors.run([edited, SourceDocument("new", "Оплата", "Оплата картой.", "new.md")])
    assert [nearest(question) for question in ("курьер", "деньги")] == ["pump", "new"]
    check_consistent()


class Failing:
    """Fails a number of times, then works as `then`."""

    def __init__(self, times: int, then: FastEmbedder) -> None:
        self.times = times
        self.then = then
        self.dimensions = then.dimensions
        self.space = then.space
        self.available = True

    def to_dict(self) -> dict[str, str]:
        return {}

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        self.times -= 1
        if self.times >= 0:
            raise ConnectionError
        return self.then.passages(texts)

    def question(self, text: str) -> Dense:
        return self.then.question(text)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, models: Path) -> Failing:
    embedder: Embedder = Failing(0, FastEmbedder(ENCODER, DIMENSIONS, file=FILE, cache_dir=str(models), threads=1))
    monkeypatch.setattr(dense, "_embedder", lambda json_form: embedder)
    return embedder  # type: ignore[return-value]


def test_documents_that_cannot_be_embedded_are_refused_and_kept_for_later(
    tenant: Tenant, with_vectors: Ingest, failing: Failing
) -> None:
    with_vectors.run(ARTICLES[:1])
    failing.times = 1
    with pytest.raises((EmbeddingFailed, PipelineRuntimeError)) as raised:
        with_vectors.run(ARTICLES)
    assert EmbeddingFailed in {type(raised.value), type(raised.value.__cause__)}
    assert {record.doc_id for record in documents.all()} == {"refund"}
    assert open_collection().count() == 1
    assert nearest("Как отдать?") == "refund"
    report = with_vectors.run(ARTICLES)
    assert (report.added, report.healed) == (2, True)
    assert nearest("помпа") == "pump"
    check_consistent()


def test_a_title_that_cannot_be_embedded_is_not_changed(tenant: Tenant, with_vectors: Ingest, failing: Failing) -> None:
    with_vectors.run(ARTICLES)
    library = Library(with_vectors.rewrite)
    failing.times = 1
    with pytest.raises(EmbeddingFailed) as raised:
        library.change("pump", {"title": "Доставка"})
    assert f"service.{raised.value.code}.detail" in keys("service.")
    assert library.read("pump").title == "Насос"
    failing.times = 1
    assert library.change("pump", {"priority": 7}).title == "Насос"
    failing.times = 0
    library.change("pump", {"title": "Доставка"})
    assert nearest("курьер") == "pump"
    check_consistent()


def test_a_rebuild_that_cannot_embed_changes_nothing(
    tenant: Tenant, ingest: Ingest, with_vectors: Ingest, failing: Failing
) -> None:
    ingest.run(ARTICLES)
    failing.times = 1
    with pytest.raises(EmbeddingFailed):
        with_vectors.rebuild().finish()
    assert [(generation.number, generation.state) for generation in generations.all()] == [(1, "in_force")]
    check_consistent()
    with_vectors.rebuild().finish()
    assert nearest("помпа") == "pump"

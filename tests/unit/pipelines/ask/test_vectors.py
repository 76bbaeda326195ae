"""Search with vectors as the authors' guide sets it up, by YAML alone, over a real index; and every way it can fail."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.embed import dense
from components.ingest.document import SourceDocument
from components.models import breaker
from components.retrieve.cache import TenantLruCache
from components.turn import Turn
from pipelines.ask.engine import AskEngine
from pipelines.ingest.usecase import Ingest
from pipelines.lint import lint
from settings import ROOT
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.index import DENSE
from tenants.knowledge import rejected
from tenants.knowledge.rejected import Rejected
from tests.encoders import DIMENSIONS, ENCODER, FILE, encoder, lay_out, with_embedder
from tests.pages import MODELS, marked

pytestmark = pytest.mark.usefixtures("shared_installation")

INGEST = (ROOT / "pipelines/ingest/ingest.yaml").read_text(encoding="utf-8")
ARTICLES = [
    SourceDocument("refund", "Возврат", "Возврат товара надлежащего качества возможен в течение 14 дней.", "refund.md"),
    SourceDocument("pump", "Насос", "Насос меняют в мастерской за 3 дня.", "pump.md"),
    SourceDocument("password", "Пароль", "Пароль меняют в профиле, в разделе безопасности.", "password.md"),
    SourceDocument("delivery", "Доставка", "Доставка по городу занимает 2 дня.", "delivery.md"),
]


def ingest_with(block: str, folder: Path) -> Ingest:
    path = folder / "ingest.yaml"
    path.write_text(with_embedder(INGEST, block), encoding="utf-8")
    assert lint(path.read_text(encoding="utf-8")) == []
    return Ingest(path)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    lay_out(folder, ENCODER, encoder())
    return folder


@pytest.fixture(scope="module")
def shop(shared_installation: None, models: Path) -> Iterator[Tenant]:
    """A shop with an index made without vectors and rebuilt with them, as in the guide."""
    block = re.sub(r"model: \S+", f"model: {ENCODER}", marked(MODELS, "embedder"))
    block = re.sub(r"dimensions: \d+", f"dimensions: {DIMENSIONS}", block)
    block = re.sub(r"file: .*", f"file: {FILE}\n          cache_dir: {models}", block)
    Registry().add("tools")
    with acting_as(Tenant("tools", "anna")) as tenant:
        Ingest().run(ARTICLES)
        ingest_with(block, models).rebuild().finish()
        yield tenant


@pytest.fixture(scope="module")
def engine() -> AskEngine:
    return AskEngine()


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_QUESTIONS", TenantLruCache(10))
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})


def ask_turn(engine: AskEngine, question: str) -> Turn:
    return engine.run(Turn("t", question))


def test_the_guides_blocks_are_sound(tmp_path: Path) -> None:
    for name in ("embedder", "ollama-embedder"):
        run_report = ingest_with(marked(MODELS, name), tmp_path)
        assert run_report.encoder.dense is not None


def test_an_answer_in_other_words_is_found(shop: Tenant, engine: AskEngine) -> None:
    turn = ask_turn(engine, "Помпа: когда помпа?")
    best = turn.evidence.passages[0]
    assert best.doc_id == "pump"
    assert best.scores[DENSE] == 1.0
    assert best.scores["text-sparse"] == 0.0
    assert best.scores["cosine"] > 0.9
    assert turn.degraded == ()


def test_cosines_of_the_fitted_encoder_answer_in_other_words(
    shop: Tenant, engine: AskEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask_turn(engine, "Помпа: когда помпа?").outcome == "refused"
    monkeypatch.setattr("components.retrieve.reranker.is_fitted", lambda space: ENCODER in space)
    turn = ask_turn(engine, "Помпа: когда помпа?")
    assert (turn.outcome, "3 дня" in turn.reply.text) == ("answered", True)


def test_a_rejected_approach_in_other_words_reaches_the_evidence(shop: Tenant, engine: AskEngine) -> None:
    approaches = [rejected.put(Rejected(text, "нельзя")) for text in ("Насос", "Возврат")]
    try:
        evidence = ask_turn(engine, "Помпа: когда помпа?").evidence
    finally:
        for approach in approaches:
            rejected.remove(approach.rejected_id)
    assert [(one.text, one.coverage) for one in evidence.rejected] == [("Насос", 0.0)]

"""Run the profiles of docs/develop/ over a small knowledge base."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from fastembed.common.model_description import ModelSource
from fastembed.rerank.cross_encoder import TextCrossEncoder
from haystack import Pipeline
from haystack.tracing.tracer import disable_tracing

from components.ingest.document import SourceDocument
from components.models import breaker
from components.turn import Exchange, Turn
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask.answering import answer_of
from pipelines.ask.engine import YAML, AskEngine
from pipelines.ask.steps import record_steps
from pipelines.ask.usecase import Ask as AskUseCase
from pipelines.definition import ALLOWED_MODULES, load
from pipelines.ingest.usecase import Ingest
from pipelines.lint import lint_file
from settings import ROOT, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tests.encoders import CROSS_ENCODER, DIMENSIONS, ENCODER, FILE, cross_encoder, encoder, lay_out, with_embedder
from tests.pages import PIPELINES, blocks, edits, profile

Asked: TypeAlias = tuple[Turn, list[str]]
"""A finished turn and the steps that it took, in order."""
Ask: TypeAlias = Callable[[str], Asked]

INGEST = (ROOT / "pipelines" / "ingest" / "ingest.yaml").read_text(encoding="utf-8")
ASK = (ROOT / "pipelines" / "ask" / "ask.yaml").read_bytes()
OLLAMA, OPENAI = "qwen3:4b-instruct", "gpt-4.1-mini"
ARTICLES = [
    SourceDocument("gifts", "Подарки", "Подарки принимают назад в течение 14 дней.", meta={"updated_at": "2024-01-01"}),
    SourceDocument(
        "rules",
        "Подарки: правила",
        "Подарки принимают назад в течение 14 дней, если есть чек.",
        meta={"updated_at": "2026-01-01"},
    ),
    SourceDocument("pump", "Насос", "Насос стиральной машины меняют в мастерской за 3 дня."),
    SourceDocument("password", "Пароль", "Пароль меняют в профиле, в разделе безопасности."),
    SourceDocument("delivery", "Доставка", "Доставка по городу занимает 2 дня."),
    SourceDocument("deposit", "Залог", "За прокат дрели берут залог 3 000 ₽.", meta={"updated_at": "2024-01-01"}),
    SourceDocument("prices", "Прокат дрели", "Прокат дрели стоит 500 ₽ в день.", meta={"updated_at": "2026-01-01"}),
]
DEPOSIT = "Какой залог за прокат дрели?"
REVERSED = """
components:
  reversed:
    type: haystack.components.rankers.meta_field.MetaFieldRanker
    init_parameters: {meta_field: relevance, sort_order: ascending}
connections:
  - {sender: rank.documents, receiver: reversed.documents}
  - {sender: reversed.documents, receiver: expand.documents}
"""
GIFTS = "Принимают ли подарки назад в течение 14 дней?"
PUMP = "Насос стиральной машины меняют в мастерской?"


@pytest.fixture(scope="module")
def shop(shared_installation: None) -> Iterator[Tenant]:
    """A tenant in context with a lexical index."""
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna", SCOPES)) as tenant:
        Ingest().run(ARTICLES)
        yield tenant


@pytest.fixture
def dense(shop: Tenant, tmp_path: Path) -> Iterator[Tenant]:
    """The tenant with dense vectors of a tiny encoder."""
    lay_out(tmp_path, ENCODER, encoder())
    parameters = {"model": ENCODER, "dimensions": DIMENSIONS, "file": FILE, "cache_dir": str(tmp_path)}
    embedder = {"type": "components.embed.fast.FastEmbedder", "init_parameters": parameters}
    block = f"      embedder: {yaml.safe_dump(embedder, default_flow_style=True, width=1_000)}"
    path = tmp_path / "ingest.yaml"
    path.write_text(with_embedder(INGEST, block), encoding="utf-8")
    Registry().add("dense")
    with acting_as(Tenant("dense", "anna", SCOPES)) as tenant:
        Ingest(path).run(ARTICLES)
        yield tenant


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    """A simulated model server, at the addresses where profiles look for Ollama and OpenAI."""
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with simulator_thread(Knobs(models=(OLLAMA, OPENAI))) as (simulator, url):
        monkeypatch.setenv("OPORA_OLLAMA_URL", url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        get_settings.cache_clear()
        yield simulator
    get_settings.cache_clear()
    disable_tracing()


@pytest.fixture
def loaded(shop: Tenant, tmp_path: Path) -> Iterator[Callable[[str], AskEngine]]:
    """Lay a profile over the deployed pipeline, check it, and return its engine."""
    engines: list[AskEngine] = []

    def load(text: str) -> AskEngine:
        path = tmp_path / "ask" / "profiles" / "new.yaml"
        path.parent.mkdir(parents=True)
        (tmp_path / "ask" / "ask.yaml").write_bytes(ASK)
        path.write_text(text, encoding="utf-8")
        assert lint_file(path) == []
        engine = AskEngine(path)
        engines.append(engine)
        return engine

    yield load
    for engine in engines:
        engine.close()


@pytest.fixture
def built(loaded: Callable[[str], AskEngine]) -> Callable[[str], Ask]:
    """Load a profile, and return a function that asks it."""

    def build(text: str) -> Ask:
        engine = loaded(text)

        def ask(question: str) -> Asked:
            with record_steps() as steps:
                return engine.run(Turn("t", question)), list(steps.milliseconds)

        return ask

    return build


def cited(turn: Turn) -> list[str]:
    assert turn.draft is not None
    return [citation.passage.doc_id for citation in turn.draft.citations if citation.origin == "primary"]


def test_the_table_of_steps_has_their_sockets() -> None:
    nodes = Pipeline.from_dict(load(YAML), allowed_modules=ALLOWED_MODULES).graph.nodes
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PIPELINES, re.MULTILINE)
    assert {name for name, _, _ in rows} == {name for name in nodes if name not in ("search", "again")}
    for name, needed, given in rows:
        mandatory = {one.name for one in nodes[name]["input_sockets"].values() if one.is_mandatory}
        assert set(re.findall(r"`(\w+)", needed)) == mandatory
        assert set(re.findall(r"`(\w+)", given)) >= set(nodes[name]["output_sockets"])


def test_a_stock_ranker_orders_what_is_graded(shop: Tenant, built: Callable[[str], Ask]) -> None:
    assert cited(AskEngine().run(Turn("t", GIFTS))) == ["gifts"]
    turn, steps = built(profile("newest"))(GIFTS)
    assert steps[steps.index("rank") : steps.index("curated")] == ["rank", "newest", "expand"]
    assert cited(turn) == ["rules"]


def test_the_first_profile_of_the_page_adds_a_step_and_raises_a_threshold(built: Callable[[str], Ask]) -> None:
    turn, steps = built(profile("careful"))(GIFTS)
    assert "newest" in steps
    assert [gate.threshold for gate in turn.verdict.gates if gate.name == "relevance"] == [0.7]


@pytest.mark.parametrize("ranker", [profile("newest"), REVERSED], ids=["newest", "reversed"])
def test_a_ranker_puts_no_answer_to_another_question_first(built: Callable[[str], Ask], ranker: str) -> None:
    turn, _ = built(ranker)(DEPOSIT)
    accepted = [passage.doc_id for passage in turn.evidence.relevant_passages()]
    assert accepted.index("prices") < accepted.index("deposit")
    assert (turn.outcome, cited(turn)) == ("answered", ["deposit"])


@pytest.mark.usefixtures("dense")
def test_a_stock_retriever_searches_our_index(built: Callable[[str], Ask], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.retrieve.reranker.is_fitted", lambda space: ENCODER in space)
    ask = built(profile("hybrid"))
    turn, steps = ask(PUMP)
    assert (turn.outcome, cited(turn), turn.degraded) == ("answered", ["pump"], ())
    assert {"words", "meaning", "hybrid"} <= set(steps)
    assert "retrieve" not in steps
    by_meaning, _ = ask("помпа")
    assert by_meaning.evidence.passages[0].doc_id == "pump"
    assert by_meaning.evidence.passages[0].scores["cosine"] > 0.9


def test_a_cross_encoder_orders_what_is_graded(shop: Tenant, built: Callable[[str], Ask], tmp_path: Path) -> None:
    lay_out(tmp_path, CROSS_ENCODER, cross_encoder())
    TextCrossEncoder.add_custom_model(CROSS_ENCODER, sources=ModelSource(hf=CROSS_ENCODER), model_file=FILE)
    reader = yaml.safe_load(profile("reader"))
    parameters = reader["components"]["rerank"]["init_parameters"]
    parameters |= {"model_name": CROSS_ENCODER, "local_files_only": True, "cache_dir": str(tmp_path)}
    question = "Насос, пароль, доставка: пароль"
    assert AskEngine().run(Turn("t", question)).evidence.passages[0].doc_id == "delivery"
    turn, steps = built(yaml.safe_dump(reader))(question)
    assert steps[steps.index("rank") : steps.index("curated")] == ["rank", "rerank", "expand"]
    assert turn.evidence.passages[0].doc_id == "password"


def test_a_stock_retriever_searches_by_words_without_vectors(built: Callable[[str], Ask]) -> None:
    turn, _ = built(profile("hybrid"))(PUMP)
    assert (turn.outcome, cited(turn), turn.degraded) == ("answered", ["pump"], ())
    assert "cosine" not in turn.evidence.passages[0].scores


def test_a_joiner_merges_two_retrievers(built: Callable[[str], Ask]) -> None:
    turn, steps = built(profile("both"))(PUMP)
    assert sorted(steps[: steps.index("dedupe")][-3:]) == ["by_words", "retrieve", "unite"]
    assert steps.count("unite") == 1
    assert (turn.outcome, cited(turn), turn.degraded) == ("answered", ["pump"], ())


@pytest.mark.usefixtures("simulator")
def test_a_router_chooses_the_answerer_by_adequacy(built: Callable[[str], Ask]) -> None:
    ask = built(profile("thrifty"))
    strong, steps = ask(PUMP)
    assert strong.evidence.adequacy >= 0.8
    assert (strong.outcome, "answer" in steps, "write" in steps) == ("answered", True, False)
    weak, steps = ask("День доставки по городу")
    assert weak.evidence.adequacy < 0.8
    assert ("answer" in steps, "write" in steps) == (False, True)
    assert (weak.outcome, cited(weak)) == ("answered", ["delivery"])
    assert weak.draft is not None
    assert not weak.draft.quoted


def test_the_notebook_example_answers(
    shop: Tenant, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = blocks(PIPELINES, "python")
    exec(example.replace("How do I return a product?", PUMP), {})
    outcome, cited_titles = capsys.readouterr().out.splitlines()
    assert outcome.startswith("answered Насос")
    assert cited_titles == "['Насос']"


def test_a_stock_prompt_and_generator_answer(built: Callable[[str], Ask], simulator: Simulator) -> None:
    ask = built(profile("builder"))
    turn, steps = ask(PUMP)
    assert steps[steps.index("prompt") :][:3] == ["prompt", "llm", "cite"]
    assert (turn.outcome, turn.degraded, cited(turn)) == ("answered", (), ["pump"])
    assert turn.reply.text == "Насос стиральной машины меняют в мастерской за 3 дня. [1]"
    assert turn.draft is not None
    assert (turn.draft.quoted, turn.draft.factuality_status) == (False, "checked")
    assert simulator.calls[0].task == "answer"


def test_a_stock_generator_is_asked_the_standalone_question_and_counted(
    loaded: Callable[[str], AskEngine], simulator: Simulator
) -> None:
    turn = Turn("t", "А за сколько дней?", history=(Exchange(PUMP, "answered"),))
    finished, steps = AskUseCase(loaded(profile("builder"))).finish(turn)
    stock, judging = steps.calls[0], steps.calls[1:]
    assert simulator.calls[0].question == finished.standalone_question != turn.question
    assert (stock.caller, stock.provider, stock.model) == ("llm", "ollama", OLLAMA)
    assert stock.prompt_tokens > stock.completion_tokens > 0
    assert len(judging) == len(simulator.calls) - 1
    meta = answer_of(finished, steps=steps).meta
    assert (meta.provider, meta.model) == ("ollama", OLLAMA)


def test_a_chain_of_providers_begins_with_the_first(built: Callable[[str], Ask], simulator: Simulator) -> None:
    ((_, _, old, new),) = edits(PIPELINES)
    turn, _ = built(profile("builder").replace(f"{old}\n", new))(PUMP)
    assert (turn.outcome, simulator.calls[0].model) == ("answered", OPENAI)


def test_a_chain_of_providers_survives_a_failure(
    built: Callable[[str], Ask], simulator: Simulator, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://{nowhere}/v1")
    ((_, _, old, new),) = edits(PIPELINES)
    turn, _ = built(profile("builder").replace(f"{old}\n", new))(PUMP)
    assert (turn.outcome, simulator.calls[0].model) == ("answered", OLLAMA)


def test_the_log_says_why_no_question_can_be_answered(
    loaded: Callable[[str], AskEngine],
    simulator: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    ((_, _, old, new),) = edits(PIPELINES)
    turn, _ = AskUseCase(loaded(profile("builder").replace(f"{old}\n", new))).finish(Turn("t", PUMP))
    assert turn.outcome == "failed"
    assert "OPENAI_API_KEY" in caplog.text
    assert simulator.calls == []

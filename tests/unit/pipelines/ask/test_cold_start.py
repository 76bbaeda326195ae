"""Models that have to be loaded first: no breaker opens, the load goes on, and later questions use the models."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from components.embed import dense
from components.language.encoder_settings import settings_from
from components.models import breaker
from components.models.breaker import Upstream
from components.models.calls import collect_calls
from components.retrieve.cache import TenantLruCache
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask import pipeline_wrapper
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.engine import AskEngine
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from settings import ROOT, Settings
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import generations
from tests.unit.pipelines.ask.faults import equip

ERRORS = ROOT / "evaluation/demo/ru/errors_e10_e30.md"
COLD = Tenant("cold", "anna", SCOPES)
FIRST, LATER = "Стиральная машина показывает ошибку E20, что делать?", "Что означает код E10?"


@pytest.fixture
def cold(tmp_path: Path, installation: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Ask, Simulator]]:
    """A profile whose models and embedder take three seconds to load; their breakers open after one failure."""
    embedder = Upstream(failures=1, pause=60, concurrent=32)
    monkeypatch.setattr(breaker, "_UPSTREAMS", {("embedder", "simulated-embed"): embedder})
    monkeypatch.setattr(dense, "_QUESTIONS", TenantLruCache(10))
    with simulator_thread() as (simulator, url):
        pipelines = equip(adapt(tmp_path, url, timeout=1, loading=30, failures=1), url, patience=0.2)
        Registry().add(COLD.tenant_id)
        with acting_as(COLD):
            Ingest(pipelines / "ingest" / "ingest.yaml").run_path(ERRORS)
            simulator.set_knobs(Knobs(loading_ms=3_000))
            with closing(AskEngine(pipelines / "ask" / "profiles" / "ollama.yaml")) as engine:
                yield Ask(engine), simulator


def within(seconds: float, ask: Ask, question: str) -> TurnAnswer:
    with collect_calls(monotonic() + seconds):
        return ask.answer(AskRequest(question=question))


def test_a_cold_model_is_loaded_for_later_questions(cold: tuple[Ask, Simulator]) -> None:
    ask, simulator = cold
    first = within(2, ask, FIRST)
    assert set(first.meta.degraded) >= {"answer", "embedder"}
    assert first.citations, "it is quoted meanwhile"
    assert breaker.open_now() == 0

    later = within(30, ask, FIRST)
    assert "answer" not in later.meta.degraded
    assert (later.outcome, breaker.open_now()) == ("answered", 0)
    assert within(30, ask, LATER).meta.degraded == ()
    assert not [call for call in simulator.calls if call.outcome == "left"], "nobody aborted the load"


def test_the_start_does_not_wait_for_a_cold_model(cold: tuple[Ask, Simulator], monkeypatch: pytest.MonkeyPatch) -> None:
    ask, simulator = cold
    simulator.set_knobs(Knobs(loading_ms=60_000))
    monkeypatch.setattr(pipeline_wrapper, "REHEARSAL_SECONDS", 0.5)
    wrapper, started_at = pipeline_wrapper.PipelineWrapper(), monotonic()  # type: ignore[no-untyped-call]
    wrapper.ask = ask
    wrapper.warm_up()
    ask.recorder.close()
    assert monotonic() - started_at < 30
    assert breaker.open_now() == 0
    assert {call.outcome for call in simulator.calls} == {"open"}, "the load goes on"


def test_the_embedder_is_loaded_at_the_start(cold: tuple[Ask, Simulator], caplog: pytest.LogCaptureFixture) -> None:
    _, simulator = cold
    simulator.set_knobs(Knobs())
    with acting_as(COLD):
        dense_settings = settings_from(generations.all()[0].encoder).dense
    assert dense_settings is not None
    dense.load(dense_settings)
    assert [(call.task, call.outcome) for call in simulator.calls] == [("embed", "ok")]
    assert "cannot be loaded" not in caplog.text

"""Calls of models over HTTP: every fault has its outcome, other models take over, and time is bounded."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from contextvars import copy_context
from functools import cache
from pathlib import Path
from time import monotonic

import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack_integrations.components.generators.ollama import OllamaChatGenerator

from components.models import breaker
from components.models.call_format import Generator
from components.models.calls import Calls, Tier, collect_calls
from components.models.chat import ChatModels
from components.models.failures import Interrupted, ModelFailed
from evaluation.simulator.knobs import Fault, FaultKind, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from settings import get_settings
from tenants.access import spending
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import database

QUESTION = (
    '<passages id="aa">\n[1] source: E20\nКод E20 означает, что вода не сливается.\n</passages id="aa">'
    '\n\n<question id="aa">\nЧто означает код E20?\n</question id="aa">'
)
SCHEMA = {
    "type": "object",
    "properties": {"quality": {"type": "integer"}, "answerability": {"enum": ["fully", "partially", "cannot"]}},
    "required": ["quality", "answerability"],
    "additionalProperties": False,
}
SHORT = 0.2
OUTCOMES: dict[FaultKind, set[str]] = {
    "refused": {"refused", "server_error"},
    "hang": {"timeout"},
    "slow": {"timeout"},
    "500": {"server_error"},
    "429": {"rate_limited"},
    "truncated": {"malformed"},
    "cut_off": {"server_error", "refused"},
    "noise": {"malformed", "empty", "server_error"},
    "empty": {"empty"},
}
"""Outcomes of a call. Other faults are in the reply, where only its parser can detect them."""

Make = Callable[..., Generator]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Simulator, str]]:
    with simulator_thread() as made:
        yield made


@pytest.fixture
def simulator(server: tuple[Simulator, str]) -> Simulator:
    server[0].set_knobs(Knobs())
    return server[0]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna")):
        yield
    database.close_all()
    get_settings.cache_clear()


@pytest.fixture(autouse=True)
def _no_faults_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})


@pytest.fixture(scope="module", params=["ollama", "openai"])
def make(request: pytest.FixtureRequest, server: tuple[Simulator, str]) -> Iterator[Make]:
    """Create generators of either protocol, cached by model: each creates its own client."""
    url, made = server[1], ExitStack()

    @cache
    def generator(model: str = "simulated") -> Generator:
        if request.param == "ollama":
            return made.enter_context(closing(OllamaChatGenerator(model=model, url=url)))
        openai = OpenAIChatGenerator(model=model, api_base_url=f"{url}/v1", max_retries=0)
        return made.enter_context(closing(openai))

    with made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        yield generator


def ask(
    models: ChatModels,
    tier: Tier = "fast",
    on_text: Callable[[str], None] | None = None,
    schema: Mapping[str, object] | None = None,
) -> str:
    return models.ask(
        [ChatMessage.from_system("Answer."), ChatMessage.from_user(QUESTION)],
        step="answer",
        prompt="answer.ru@0",
        tier=tier,
        temperature=0.3,
        on_text=on_text,
        schema=schema,
    )


def outcomes(calls: Calls) -> list[str]:
    return [call.outcome for call in calls.finished]


def test_a_reply_is_returned_streamed_and_counted(make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(call_ms=200))
    pieces: list[str] = []
    models = ChatModels(make())
    with collect_calls() as calls:
        whole, heard = ask(models), ask(models, on_text=pieces.append)
    assert whole == heard == "".join(pieces)
    assert "[1]" in whole
    assert len(pieces) > 1
    for call in calls.finished:
        assert (call.outcome, call.model, call.step, call.prompt) == ("ok", "simulated", "answer", "answer.ru@0")
        assert call.prompt_tokens > 0
        assert call.completion_tokens > 0
        assert call.milliseconds > 0


@pytest.mark.parametrize("kind", OUTCOMES)
@pytest.mark.parametrize("streamed", [False, True])
def test_every_fault_has_its_outcome_in_time(kind: FaultKind, streamed: bool, make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind=kind),)))
    timeout = SHORT if OUTCOMES[kind] == {"timeout"} else 30
    started, outcome = monotonic(), "ok"
    with collect_calls() as calls:
        try:
            ask(ChatModels(make(), timeout=timeout), on_text=(lambda _: None) if streamed else None)
        except ModelFailed as failure:
            outcome = failure.outcome
    assert outcome in OUTCOMES[kind]
    assert outcomes(calls) == [outcome]
    assert monotonic() - started < 30


def test_the_form_that_is_asked_for_reaches_the_provider(make: Make, simulator: Simulator) -> None:
    for on_text in (None, lambda _: None):
        said = ask(ChatModels(make()), schema=SCHEMA, on_text=on_text)
        assert set(json.loads(said)) == {"quality", "answerability"}


def test_fallback_models_are_called_in_order(make: Make, simulator: Simulator) -> None:
    models = ChatModels(make(), make("simulated-strong"), make("simulated-fallback"))
    simulator.set_knobs(
        Knobs(faults=(Fault(kind="500", model="simulated"), Fault(kind="429", model="simulated-strong")))
    )
    with collect_calls() as calls:
        assert ask(models)
    assert [(call.model, call.outcome) for call in calls.finished] == [
        ("simulated", "server_error"),
        ("simulated-strong", "rate_limited"),
        ("simulated-fallback", "ok"),
    ]
    with collect_calls() as calls:
        assert ask(models, "strong")
    assert [call.model for call in calls.finished] == ["simulated-strong", "simulated", "simulated-fallback"]


def test_an_interrupted_answer_is_not_restarted_by_another_model(make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="cut_off", model="simulated"),)))
    models = ChatModels(make(), make("simulated-strong"))
    with collect_calls() as calls, pytest.raises(Interrupted):
        ask(models, on_text=lambda _: None)
    assert len(calls.finished) == 1
    with collect_calls() as calls:
        assert ask(models)
    assert len(calls.finished) == 2


def test_a_failing_model_is_skipped_and_tried_again_later(make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="500"),)))
    models, same = (ChatModels(make(), failures=3, pause=30) for _ in range(2))
    with collect_calls() as calls:
        for one in (models, same, models, same, models):
            with pytest.raises(ModelFailed):
                ask(one)
    assert outcomes(calls)[:4] == ["server_error"] * 3 + ["open_circuit"]
    simulator.set_knobs(Knobs())
    later = monotonic() + 31
    shared = models.upstream(models.fast)
    for paused in (shared.breaker, shared.of_tenants[""]):
        paused.clock = lambda: later
    with collect_calls() as calls:
        assert ask(same)
        assert ask(models)
    assert outcomes(calls) == ["ok", "ok"]


def test_no_more_calls_at_once_than_the_model_has_seats(make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(call_ms=60))
    models = ChatModels(make(), concurrent=2, timeout=5)
    with collect_calls() as calls, ThreadPoolExecutor(6) as pool:
        work = [pool.submit(copy_context().run, ask, models) for _ in range(6)]
        assert all(one.result() for one in work)
    busiest = max(sum(a.started <= b.started < a.ended for a in simulator.calls) for b in simulator.calls)
    assert busiest <= 2
    assert outcomes(calls) == ["ok"] * 6


def test_a_turn_without_time_left_calls_no_model(make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs())
    with collect_calls(deadline=monotonic() - 1) as calls:
        for _ in range(9):
            with pytest.raises(ModelFailed):
                ask(ChatModels(make(), make("simulated-strong")))
    assert set(outcomes(calls)) == {"timeout"}
    assert not simulator.calls
    # That is not the model's fault.
    assert ask(ChatModels(make()))


def test_a_call_takes_no_longer_than_the_turn_has_left(make: Make, simulator: Simulator) -> None:
    simulator.set_knobs(Knobs(faults=(Fault(kind="hang"),)))
    started = monotonic()
    with collect_calls(deadline=started + SHORT) as calls, pytest.raises(ModelFailed):
        ask(ChatModels(make(), make("simulated-strong"), timeout=30))
    assert outcomes(calls) == ["timeout"]
    assert monotonic() - started < 10


@pytest.mark.usefixtures("acme", "simulator")
def test_calls_cost_what_their_tokens_do_until_the_day_s_money_is_spent(make: Make) -> None:
    models = ChatModels(make(), prices={"simulated": [1_000.0, 2_000.0]})
    policy.change(spend_cap_usd_per_day=0.01)
    with collect_calls() as calls:
        ask(models)
        with pytest.raises(ModelFailed):
            ask(models)
    first = calls.finished[0]
    cost = (1_000 * first.prompt_tokens + 2_000 * first.completion_tokens) / 1e6
    assert outcomes(calls) == ["ok", "too_dear"]
    assert first.cost_usd == pytest.approx(cost)
    assert spending.spent() == pytest.approx(cost)


@pytest.mark.usefixtures("simulator")
def test_a_sum_that_cannot_be_counted_costs_no_answer(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_order(*spent: float) -> bool:
        raise OSError(spent)

    models = ChatModels(make(), prices={"simulated": [1_000.0, 2_000.0]})
    monkeypatch.setattr(spending, "is_spent", lambda: False)
    monkeypatch.setattr(spending, "spend", out_of_order)
    assert ask(models)
    monkeypatch.setattr(spending, "is_spent", out_of_order)
    with pytest.raises(ModelFailed, match="too_dear"):
        ask(models)

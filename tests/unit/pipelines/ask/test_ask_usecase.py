"""The use case with a fake pipeline: success, failure, and slow turns."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event
from typing import Never

import pytest
from haystack.core.errors import PipelineRuntimeError
from haystack.tracing.tracer import NullTracer
from starlette.datastructures import Headers

from components.turn import Claim, Draft, Reply, Turn
from pipelines.ask import runner, usecase
from pipelines.ask.contract import AskRequest
from pipelines.ask.pipeline_wrapper import PipelineWrapper
from pipelines.ask.runner import Runner
from pipelines.ask.steps import StepTracer, collect_faults
from pipelines.ask.tracing import sender
from pipelines.ask.tracing.export import span_id
from pipelines.ask.usecase import Ask
from settings import Settings, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import conversation_memory, store, tickets
from tenants.core.context import Tenant, acting_as, current
from tenants.core.errors import Busy
from tests.receiving import receiving

REQUEST = AskRequest(question="Где мой секретный заказ?")


class FakeEngine:
    """Finishes turns as scripted."""

    digest = "fake"

    def __init__(self, finish: Callable[[Turn], Turn]) -> None:
        self.finish = finish
        self.calls = 0
        self.closed = False

    def warm_up(self) -> None:
        pass

    def run(self, turn: Turn) -> Turn:
        self.calls += 1
        with StepTracer(NullTracer()).trace("run", {"haystack.component.name": "guard"}):
            return self.finish(turn)

    def close(self) -> None:
        self.closed = True


def answered(turn: Turn) -> Turn:
    return replace(turn, outcome="answered", reply=Reply(text="Ответ."))


def stakes(turn: Turn) -> Turn:
    draft = Draft("Черновик.", (Claim("Черновик.", ()),), ())
    terms = {"channel": "chat@shop.example", "offer": "скидка 10%"}
    return replace(
        turn, outcome="high_stakes", reason="high_risk", draft=draft, reply=Reply(text="Передаю.", handoff=terms)
    )


@pytest.fixture(autouse=True)
def _tenant(installation: Settings) -> Iterator[None]:
    with acting_as(Tenant("acme", "anna", frozenset({"ask"}))):
        Registry().add("acme", locale="ru")
        yield


def test_a_turn_comes_back_as_the_contract() -> None:
    answer = Ask(FakeEngine(answered)).answer(REQUEST, turn_id="t-1")
    assert (answer.turn_id, answer.outcome, answer.answer.text, answer.locale) == ("t-1", "answered", "Ответ.", "ru")
    assert list(answer.meta.latency_ms_by_step) == ["guard"]
    assert answer.handoff is None


def test_a_traced_turn_names_its_trace_and_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PACE", 0.0)
    with receiving() as collector:
        monkeypatch.setenv("OPORA_OTLP_ENDPOINT", collector.url)
        get_settings.cache_clear()
        ask = Ask(FakeEngine(answered))
        ask.warm_up()
        answer = ask.answer(REQUEST)
        sent = collector.next().body
        ask.close()
    assert answer.trace_id == answer.turn_id.replace("-", "")
    assert bytes.fromhex(answer.trace_id) in sent
    assert REQUEST.question.encode() not in sent


@pytest.mark.parametrize("heard", [True, False])
def test_a_verdict_is_sent_after_its_trace_without_blocking(
    heard: bool, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "PACE", 0.0)
    with receiving() as phoenix:
        monkeypatch.setenv("OPORA_PHOENIX_URL", phoenix.url if heard else f"http://{nowhere}")
        get_settings.cache_clear()
        ask = Ask(FakeEngine(answered))
        answer = ask.answer(REQUEST)
        ask.recorder.close()
        assert ask.judge(answer.turn_id, "down", "wrong").reason == "wrong"
        ask.warm_up()
        ask.close()
        sent = [phoenix.next() for _ in range(2)] if heard else []
    assert [item.what for item in sent] == ["POST /v1/traces", "POST /v1/span_annotations"][: len(sent)]
    for scores in sent[1:]:
        thumb = json.loads(scores.body)["data"][-1]
        assert (thumb["name"], thumb["span_id"]) == ("thumb", span_id(answer.trace_id, 0))


def test_a_turn_whose_trace_cannot_be_made_is_answered(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object, **options: object) -> Never:
        raise ConnectionError

    monkeypatch.setenv("OPORA_OTLP_ENDPOINT", f"http://{nowhere}")
    get_settings.cache_clear()
    monkeypatch.setattr("pipelines.ask.effects.Trace.of", broken)
    assert Ask(FakeEngine(answered)).answer(REQUEST).outcome == "answered"


def test_a_conversation_is_remembered_for_its_person_alone() -> None:
    met: list[Turn] = []

    def finish(turn: Turn) -> Turn:
        met.append(turn)
        return answered(turn)

    ask = Ask(FakeEngine(finish))
    talk = AskRequest(question="Где фильтр? Мой номер +7 903 123-45-67", session_id="s-1")
    ask.answer(talk)
    ask.answer(talk.model_copy(update={"question": "А он большой?"}))
    assert [item.outcome for item in met[-1].history] == ["answered"]
    assert "Где фильтр?" in met[-1].history[0].question
    assert "123-45-67" not in met[-1].history[0].question
    for other in (Tenant("acme", "boris"), Tenant("rival", "anna")):
        Registry().exists(other.tenant_id) or Registry().add(other.tenant_id)
        with acting_as(other):
            ask.answer(talk)
        assert met[-1].history == ()


@pytest.mark.parametrize("change", [{"session_id": None}, {"anonymous": True}, {"session_id": "s-2"}])
def test_anonymous_and_foreign_turns_are_not_remembered(change: dict[str, object]) -> None:
    met: list[Turn] = []

    def finish(turn: Turn) -> Turn:
        met.append(turn)
        return answered(turn)

    ask = Ask(FakeEngine(finish))
    talk = AskRequest(question="Где фильтр?", session_id="s-1")
    ask.answer(talk.model_copy(update={"anonymous": "anonymous" in change}))
    ask.answer(talk.model_copy(update=change))
    assert met[-1].history == ()


def test_an_answer_does_not_wait_for_a_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> Never:
        raise OSError

    monkeypatch.setattr(conversation_memory, "recall", broken)
    monkeypatch.setattr(conversation_memory, "remember", broken)
    talk = AskRequest(question="Где фильтр?", session_id="s-1")
    assert Ask(FakeEngine(answered)).answer(talk).outcome == "answered"


def test_a_crash_is_an_outcome_that_reveals_no_text(caplog: pytest.LogCaptureFixture) -> None:
    def crash(turn: Turn) -> Turn:
        raise RuntimeError(f"cannot read {turn.question}")

    with caplog.at_level(logging.DEBUG):
        answer = Ask(FakeEngine(crash)).answer(REQUEST)
    assert (answer.outcome, answer.refusal_reason, answer.verdict.route) == ("failed", "pipeline_error", "error")
    assert answer.handoff is not None
    assert answer.handoff.status == "offered"
    assert answer.answer.text
    assert "cannot read" not in answer.model_dump_json()
    assert "секретный" not in caplog.text
    assert "RuntimeError at" in caplog.text


def test_a_failed_step_is_logged_by_its_name(caplog: pytest.LogCaptureFixture) -> None:
    def fail(turn: Turn) -> Turn:
        raise PipelineRuntimeError("newest", None, "секретный") from KeyError("секретный")

    with collect_faults() as faults:
        answer = Ask(FakeEngine(fail)).answer(REQUEST)
    assert answer.outcome == "failed"
    assert faults == ["newest: KeyError: 'секретный'"]
    assert "KeyError" not in answer.model_dump_json()
    assert "step newest: PipelineRuntimeError at" in caplog.text
    assert "секретный" not in caplog.text


def test_a_pipeline_that_ends_nowhere_is_a_fault() -> None:
    assert Ask(FakeEngine(lambda turn: turn)).answer(REQUEST).outcome == "failed"


def test_high_stakes_open_a_ticket_and_hide_the_draft() -> None:
    answer = Ask(FakeEngine(stakes)).answer(REQUEST)
    assert answer.handoff is not None
    assert (answer.handoff.status, answer.handoff.offer) == ("open", "скидка 10%")
    ticket = tickets.get(answer.handoff.ticket_id or "")
    assert ticket is not None
    assert (ticket.turn_id, ticket.reason, ticket.draft) == (answer.turn_id, "high_risk", "Черновик.")
    assert "Черновик" not in answer.model_dump_json()
    assert answer.answer.text.startswith("Передаю.")
    assert "скидка 10%" in answer.answer.text
    assert ticket.ticket_id in answer.answer.text


def test_a_failed_ticket_is_reported_to_the_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(store, "receive", refuse)
    answer = Ask(FakeEngine(stakes)).answer(REQUEST)
    assert answer.outcome == "high_stakes"
    assert answer.handoff is not None
    assert (answer.handoff.status, answer.handoff.ticket_id) == ("failed", None)
    assert "chat@shop.example" in answer.answer.text
    assert "disk full" not in answer.model_dump_json()


def test_the_locale_comes_from_request_then_tenant_then_installation() -> None:
    assert usecase.begin(REQUEST).locale == "ru"
    policy.change(locale="en")
    assert usecase.begin(REQUEST).locale == "en"
    assert usecase.begin(REQUEST.model_copy(update={"locale": "ru-RU"})).locale == "ru"
    assert usecase.begin(REQUEST.model_copy(update={"locale": "kk"})).locale == "en"


@pytest.fixture
def serve() -> Iterator[Callable[[FakeEngine, float], PipelineWrapper]]:
    """A wrapper around an engine, without Hayhooks."""
    made: list[PipelineWrapper] = []

    def make(engine: FakeEngine, budget: float = 30.0) -> PipelineWrapper:
        wrapper = PipelineWrapper()  # type: ignore[no-untyped-call]
        wrapper.ask = Ask(engine)
        wrapper.runner = Runner(wrapper.ask, workers=1, budget=budget)
        made.append(wrapper)
        return wrapper

    yield make
    for wrapper in made:
        wrapper.close()


async def test_a_turn_that_never_began_has_no_outcome(serve: Callable[..., PipelineWrapper]) -> None:
    release = Event()

    def stall(turn: Turn) -> Turn:
        release.wait(30)
        return answered(turn)

    engine = FakeEngine(stall)
    wrapper = serve(engine, budget=0.05)
    _, response = await asyncio.gather(wrapper.run_api_async("q"), wrapper.run_api_async("r"))
    release.set()
    assert (response.status_code, json.loads(bytes(response.body))["code"]) == (504, "timeout")
    assert engine.calls == 1


async def test_a_full_queue_refuses_questions(
    serve: Callable[..., PipelineWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = serve(FakeEngine(answered))
    monkeypatch.setattr(runner, "WAITING_LIMIT", 0)
    response = await wrapper.run_api_async("q")
    assert (response.status_code, json.loads(bytes(response.body))["code"]) == (503, "busy")
    assert "retry-after" in response.headers


async def test_a_key_answers_once_and_a_failure_frees_it(serve: Callable[..., PipelineWrapper]) -> None:
    outcomes = iter(["crash", "answer"])

    def finish(turn: Turn) -> Turn:
        if next(outcomes) == "crash":
            raise RuntimeError
        return answered(turn)

    engine = FakeEngine(finish)
    wrapper = serve(engine)
    headers = Headers({"Idempotency-Key": "k"})
    bodies = [json.loads(bytes((await wrapper.run_api_async("q", headers=headers)).body)) for _ in range(3)]
    assert [body["outcome"] for body in bodies] == ["failed", "answered", "answered"]
    assert bodies[1] == bodies[2]
    assert engine.calls == 2


async def test_a_busy_engine_frees_the_key_and_says_so(serve: Callable[..., PipelineWrapper]) -> None:
    def busy(turn: Turn) -> Turn:
        raise Busy("data_in_use")

    wrapper = serve(FakeEngine(busy))
    for _ in range(2):
        response = await wrapper.run_api_async("q", headers=Headers({"Idempotency-Key": "k"}))
        body = json.loads(bytes(response.body))
        assert (response.status_code, body["code"]) == (503, "data_in_use")
        assert body["turn_id"]


def test_the_start_rehearses_with_each_tenant_and_survives_a_busy_one(
    serve: Callable[..., PipelineWrapper], caplog: pytest.LogCaptureFixture
) -> None:
    Registry().add("beta", locale="en")
    met: list[str] = []

    def meet(turn: Turn) -> Turn:
        met.append(current().tenant_id)
        if current().tenant_id == "acme":
            raise RuntimeError from Busy("data_in_use")
        return answered(turn)

    serve(FakeEngine(meet)).warm_up()
    assert met == ["acme", "beta"]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["no rehearsal for 'acme': data_in_use"]


async def test_a_service_without_its_index_says_so(serve: Callable[..., PipelineWrapper]) -> None:
    def index_in_use(turn: Turn) -> Turn:
        raise RuntimeError from Busy("data_in_use")

    response = await serve(FakeEngine(index_in_use)).run_api_async("q")
    assert (response.status_code, json.loads(bytes(response.body))["code"]) == (503, "data_in_use")

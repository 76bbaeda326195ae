"""Streams of events: none lost, none mixed, resumed at their position, and equal to the complete answer."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Event as Signal
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.models.calls import for_models
from components.turn import SHOWN, Citation, Claim, Draft, Outcome, Reason, Reply, Turn
from pipelines.ask import runner as runner_module
from pipelines.ask import streams
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.steps import Outputs, Step
from pipelines.ask.streams import Stream, Streams
from pipelines.ask.turn_events import Event, NamedEvent, Narrator
from pipelines.ask.usecase import Ask
from settings import Settings
from tenants.access.quotas import RateLimiter
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, NotFound, RateLimited
from tenants.work import seats
from tests.generated import texts
from tests.turns import document, passage, turn
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine, answered

ANNA = Tenant("acme", "anna", frozenset({"ask"}))
PASSED = {"enough": [document("Ответ.", "c7", title="Статья")]}
"""The output of the relevance gate."""


async def events(stream: Stream, after: int = 0) -> list[Event]:
    return [event async for event in stream.read(after) if event is not None]


@pytest.fixture(scope="module")
def _careful() -> Iterator[None]:
    with policy.overridden(policy.Policy()):
        yield


def finished(outcome: Outcome, text: str = "Ответ [1]. Ещё [1].") -> Turn:
    result = passage("Ответ. Ещё.")
    draft = Draft(text, (Claim("Ответ.", (1,), "supported"),), (Citation(1, result, "Ответ.", (0, 6)),))
    reason: Reason | None = None if outcome in SHOWN else "no_relevant_context"
    return replace(
        turn("q"), outcome=outcome, reason=reason, draft=draft, reply=Reply(text=text, suggestions=("Ещё?",))
    )


@given(texts, st.sampled_from(sorted(SHOWN)))
def test_the_tokens_joined_are_the_text(text: str, outcome: Outcome) -> None:
    answer = answer_of(finished(outcome, text))
    sent_events = list(Narrator().end(answer))
    assert "".join(str(data["text"]) for name, data in sent_events if name == "token") == text
    assert sent_events[-1] == ("result", answer.model_dump(mode="json"))


@pytest.mark.parametrize("outcome", sorted(set(get_args(Outcome)) - SHOWN))
def test_what_is_no_answer_has_a_result_alone(outcome: Outcome) -> None:
    assert [name for name, _ in Narrator().end(answer_of(finished(outcome)))] == ["result"]


def step_of(narrator: Narrator, name: str, outputs: Outputs) -> Iterator[NamedEvent]:
    return narrator.step(Step(name, 1, name, 0, 1_000_000, outputs))


def writing(*pieces: str) -> tuple[Narrator, str]:
    """A narrator behind the relevance gate that has heard these pieces of an answer, and what it told of them."""
    narrator = Narrator()
    list(step_of(narrator, "dedupe", {"attempt": 1}))
    list(step_of(narrator, "evaluate_retrieval", PASSED))
    return narrator, "".join(tokens(list(narrator.piece(piece, provisional=False)) for piece in pieces))


def tokens(sent_events: Iterable[Sequence[tuple[str, Mapping[str, object]]]]) -> Iterator[str]:
    return (str(data["text"]) for some in sent_events for name, data in some if name == "token")


@pytest.mark.usefixtures("_careful")
@given(texts, st.integers(0, 200))
def test_a_streamed_answer_is_completed(text: str, place: int) -> None:
    narrator, first_events = writing(text[:place])
    sent_events = list(narrator.end(answer_of(finished("answered", text))))
    assert first_events + "".join(tokens([sent_events])) == text
    assert not {"revise", "retract"} & {name for name, _ in sent_events}


@pytest.mark.usefixtures("_careful")
def test_an_answer_that_ended_up_otherwise_is_revised() -> None:
    narrator, first_events = writing("Ответ [1].", " Ложь [1].")
    sent_events = list(narrator.end(answer_of(finished("answered"))))
    assert first_events == "Ответ [1]. Ложь [1]."
    assert [data["text"] for name, data in sent_events if name == "revise"] == ["Ответ [1]. Ещё [1]."]
    assert not list(tokens([sent_events]))


@pytest.mark.usefixtures("_careful")
@pytest.mark.parametrize("outcome", sorted(set(get_args(Outcome)) - SHOWN))
def test_an_answer_that_came_to_nothing_is_taken_back(outcome: Outcome) -> None:
    narrator, _ = writing("Ответ [1].")
    sent_events = list(narrator.end(answer_of(finished(outcome))))
    assert [(name, data.get("what")) for name, data in sent_events] == [
        ("retract", "answer"),
        ("retract", "sources"),
        ("result", None),
    ]


@pytest.mark.usefixtures("_careful")
def test_another_answer_of_a_later_pass_is_not_mixed_into_the_first() -> None:
    narrator, first_events = writing("Первый [1].")
    list(step_of(narrator, "rewrite", {"attempt": 2}))
    assert not list(narrator.piece("Второй [1].", provisional=False))
    sent_events = list(narrator.end(answer_of(finished("answered", "Второй [1]."))))
    assert first_events == "Первый [1]."
    assert [data["text"] for name, data in sent_events if name == "revise"] == ["Второй [1]."]


def test_no_piece_is_told_before_the_relevance_gate() -> None:
    assert not list(Narrator().piece("Ответ [1].", provisional=False))


@pytest.mark.usefixtures("_careful")
def test_stages_and_sources_are_told_after_the_relevance_gate() -> None:
    narrator = Narrator()
    assert list(step_of(narrator, "guard", {"question": "q"})) == []
    assert list(step_of(narrator, "evaluate_retrieval", {"retry": ["цена"]})) == []
    assert list(step_of(narrator, "dedupe", {"attempt": 2})) == []
    told = list(step_of(narrator, "evaluate_retrieval", PASSED))
    assert [(name, data.get("node"), data.get("iteration")) for name, data in told] == [
        ("stage", "guard", 1),
        ("stage", "evaluate_retrieval", 1),
        ("stage", "dedupe", 2),
        ("stage", "evaluate_retrieval", 2),
        ("sources-early", None, None),
    ]
    assert isinstance(citations := told[-1][1]["citations"], list)
    assert [(one["chunk_id"], one["title"], one["snippet"]) for one in citations] == [("c7", "Статья", "Ответ.")]
    assert [name for name, _ in step_of(narrator, "answer", {"answers": []})] == ["stage"]
    refused = answer_of(finished("cannot_answer"))
    assert [name for name, _ in narrator.end(refused)] == ["retract", "result"]


async def test_readers_see_all_events_in_order_wherever_they_begin() -> None:
    stream = Stream("t", "owner")
    early = asyncio.create_task(events(stream))
    await asyncio.sleep(0)

    def write() -> None:
        for number in range(50):
            stream.publish("token", {"text": str(number)})

    await asyncio.to_thread(write)
    stream.publish("done", {})
    stream.publish("token", {"text": "too late"})
    received = await early
    assert [event.number for event in received] == list(range(1, 52))
    assert received[-1].name == "done"
    assert await events(stream, 20) == received[20:]
    assert await events(stream, 51) == []


async def test_a_reader_wakes_up_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SILENCE_SECONDS", 0.01)
    reading = Stream("t", "owner").read()
    assert await anext(reading) is None
    await reading.aclose()


@pytest.fixture
def _acme(installation: Settings) -> Iterator[None]:
    with acting_as(ANNA):
        Registry().add("acme")
        yield


def test_only_its_owner_resumes_a_stream() -> None:
    registry = Streams()
    with acting_as(ANNA):
        stream = registry.begin("turn-1")
        assert registry.resume("turn-1:7") == (stream, 7)
        for wrong in ("turn-2:7", "turn-1:", "turn-1:x", "turn-1", ""):
            with pytest.raises(NotFound):
                registry.resume(wrong)
    for other in (Tenant("acme", "boris"), Tenant("rival", "anna")):
        with acting_as(other), pytest.raises(NotFound):
            registry.resume("turn-1:7")


def test_finished_streams_are_forgotten_and_running_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_STREAMS", 3)
    registry = Streams()
    with acting_as(ANNA):
        running, long = registry.begin("running"), registry.begin("long")
        for number in range(6):
            registry.begin(f"t{number}").publish("done", {})
        long.publish("done", {})
        registry.begin("next")
        assert registry.resume("running:0") == (running, 0)
        assert registry.resume("long:0") == (long, 0)
        with pytest.raises(NotFound):
            registry.resume("t0:0")
        assert registry.resume("t5:0")


@pytest.mark.usefixtures("_acme")
async def test_who_leaves_before_it_began_is_not_answered() -> None:
    release = Signal()

    def stall(given: Turn) -> Turn:
        release.wait(30)
        return answered(given)

    engine = FakeEngine(stall)
    runner = Runner(Ask(engine), workers=1, budget=30)
    first, second = [await runner.stream(AskRequest(question="q")) for _ in range(2)]
    reading = second.read()
    event = await anext(reading)
    assert event is not None
    assert event.name == "accepted"
    await reading.aclose()
    for _ in range(2):  # the loop's next round ends a grace of no time
        await asyncio.sleep(0)
    release.set()
    assert (await events(first))[-1].name == "done"
    assert [(event.name, event.data.get("retryable")) for event in await events(second)][-1] == ("error", True)
    assert engine.calls == 1
    runner.close()


@pytest.mark.usefixtures("_acme")
async def test_a_turn_goes_on_for_a_while_without_a_reader() -> None:
    release = Signal()

    def stall(given: Turn) -> Turn:
        assert release.wait(30)
        return answered(given)

    runner = Runner(Ask(FakeEngine(stall)), workers=1, budget=30)
    stream = await runner.stream(AskRequest(question="q"), grace=30)
    reading = stream.read()
    await anext(reading)
    await reading.aclose()
    coming_back = asyncio.create_task(events(stream, 1))
    await asyncio.sleep(0)  # it has begun to wait
    release.set()
    assert [event.name for event in await coming_back][-2:] == ["result", "done"]
    runner.close()


async def test_each_departure_has_a_grace_of_its_own() -> None:
    stream, abandoned = Stream("t", "owner", grace=0.0), asyncio.Event()
    stream.publish("accepted", {})
    stream.when_abandoned(abandoned.set)
    for comes_back in (True, False):
        reading = stream.read()
        await anext(reading)
        await reading.aclose()
        if comes_back:
            again = stream.read()
            await anext(again)
            await asyncio.sleep(0)  # the grace of the first departure is over
            assert not abandoned.is_set()
            await again.aclose()
    await asyncio.wait_for(abandoned.wait(), 30)


@pytest.mark.usefixtures("_acme")
async def test_a_full_queue_begins_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "WAITING_LIMIT", 1)
    release = Signal()

    def stall(given: Turn) -> Turn:
        release.wait(30)
        return answered(given)

    engine = FakeEngine(stall)
    runner = Runner(Ask(engine), workers=3, budget=30)
    first = await runner.stream(AskRequest(question="q"))
    for _ in range(2):
        with pytest.raises(Busy):
            await runner.stream(AskRequest(question="q"))
    release.set()
    assert (await events(first))[-1].name == "done"
    assert (engine.calls, runner.waiting) == (1, 0)
    runner.close()


@pytest.mark.usefixtures("_acme")
async def test_only_questions_spend_the_quota(installation: Settings) -> None:
    engine = FakeEngine(answered)
    runner = Runner(Ask(engine), workers=1, budget=30)
    runner.limiter = RateLimiter(installation.model_copy(update={"rate_limit_per_minute": 2}))
    assert await runner.answer(AskRequest(question="q"), "t-1", None)
    stream = await runner.stream(AskRequest(question="q"))
    await events(stream)
    # Reading it again is no question.
    assert await events(runner.streams.resume(f"{stream.turn_id}:0")[0])
    with pytest.raises(RateLimited):
        await runner.answer(AskRequest(question="q"), "t-2", None)
    with pytest.raises(RateLimited):
        await runner.stream(AskRequest(question="q"))
    assert (engine.calls, runner.waiting) == (2, 0)
    runner.close()


@given(st.floats(0.01, 600))
def test_a_turn_has_time_left_when_models_were_waited_for_in_vain(budget: float) -> None:
    left = budget - for_models(budget)
    assert left >= 0.049 * budget
    assert left >= 0.49 or left >= 0.249 * budget
    assert for_models(budget) >= 0.74 * budget


@pytest.mark.usefixtures("_acme")
async def test_a_turn_that_waits_for_a_model_leaves_its_seat_to_another() -> None:
    release, asked = Signal(), iter(["first"])

    def stall(given: Turn) -> Turn:
        if next(asked, None):
            with seats.waiting():
                assert release.wait(30)
        return answered(given)

    runner = Runner(Ask(FakeEngine(stall)), workers=1, budget=30, model_workers=1)
    first = await runner.stream(AskRequest(question="q"))
    second = await runner.stream(AskRequest(question="q"))
    assert (await events(second))[-1].name == "done"
    assert first.finished_at is None
    release.set()
    assert (await events(first))[-1].name == "done"
    runner.close()

"""Streams shared by replicas: no event is missing or repeated, whichever replica dies and whenever."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from threading import Event as Signal

import pytest
from redis import Redis

from pipelines.ask import runner as runner_module
from pipelines.ask import stream_sharing
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.stream_sharing import StreamLog
from pipelines.ask.streams import GRACE_SECONDS, Stream
from pipelines.ask.turn_events import Event
from pipelines.ask.usecase import Ask
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound, TryAgain
from tenants.storage import bus, redis_server
from tenants.work import stream_log
from tenants.work.stream_log import LoggedEvent, LoggedStream
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine, answered
from tests.webhooks import wait_until

ANNA = Tenant("acme", "anna", frozenset({"ask"}))
QUESTION = AskRequest(question="q")
ANSWERED = ["accepted", "token", "verdict", "result", "done"]
DEADLINE_SECONDS = 30.0


@pytest.fixture(autouse=True)
def _acme(installation: Settings, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_REDIS_URL", redis_url)
    get_settings.cache_clear()
    monkeypatch.setattr(redis_server, "is_configured", lambda _: True)
    monkeypatch.setattr(stream_sharing, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(stream_sharing, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(stream_log, "ALIVE_SECONDS", 1)
    with acting_as(ANNA):
        Registry().add("acme")
        yield
    bus.close_all()


@pytest.fixture
def replica() -> Iterator[Callable[[], tuple[Runner, FakeEngine]]]:
    """Start runners, each with a separate engine."""
    runners: list[Runner] = []

    def start() -> tuple[Runner, FakeEngine]:
        engine = FakeEngine(answered)
        runners.append(Runner(Ask(engine), workers=1, budget=DEADLINE_SECONDS))
        return runners[-1], engine

    yield start
    for runner in runners:
        runner.close()


Replica = Callable[[], tuple[Runner, FakeEngine]]


async def read(stream: Stream) -> list[Event]:
    return [event async for event in stream.read() if event is not None]


def logged(turn_id: str) -> list[tuple[int, str]]:
    return [(event.number, event.name) for event in stream_log.events(turn_id, 0)]


def begun_elsewhere(*names: str, holder: str = "gone") -> LoggedStream:
    """Write a stream of another process up to these events."""
    stream = LoggedStream("t-1", stream_log.owner(), holder, stream_sharing.request_hash(QUESTION))
    events = [(stream, LoggedEvent(number, name, {})) for number, name in enumerate(names, 1)]
    stream_log.begin(stream, get_settings())
    stream_log.append(events, "somebody", get_settings())
    return stream


def begun(writing: StreamLog, turn_id: str) -> LoggedStream:
    stream = writing.begin(turn_id, QUESTION)
    assert stream is not None
    return stream


async def test_a_stream_is_read_at_another_replica_as_it_was(replica: Replica) -> None:
    (here, _), (there, engine) = replica(), replica()
    stream = await here.stream(QUESTION, grace=GRACE_SECONDS)
    events = await read(stream)
    here.close()  # all is written
    elsewhere, after = await there.resume(f"{stream.turn_id}:2", QUESTION, None)
    assert (await read(elsewhere), after) == (events, 2)
    assert [event.name for event in events] == ANSWERED
    assert engine.calls == 0
    for event_id, request in ((f"{stream.turn_id}:x", QUESTION), (f"{stream.turn_id}:2", AskRequest(question="?"))):
        third, _ = replica()
        with pytest.raises(NotFound):
            await third.resume(event_id, request, None)
    with acting_as(Tenant("acme", "boris")), pytest.raises(NotFound):
        await replica()[0].resume(f"{stream.turn_id}:2", QUESTION, None)


async def test_an_orphaned_turn_is_rerun_and_readable_at_another_replica(replica: Replica) -> None:
    await asyncio.to_thread(begun_elsewhere, "accepted", "token")
    (here, engine), (there, unused) = replica(), replica()
    stream, _ = await here.resume("t-1:4", QUESTION, None)
    events = await read(stream)
    resumed = ["accepted", "token", "stage", "stage", "retract", "retract", *ANSWERED[1:]]
    assert [event.name for event in events] == resumed
    assert [event.number for event in events] == list(range(1, len(resumed) + 1))
    here.close()
    assert await asyncio.to_thread(logged, "t-1") == list(enumerate(resumed, 1))
    assert await read((await there.resume("t-1:4", QUESTION, None))[0]) == events
    assert (engine.calls, unused.calls) == (1, 0)


async def test_a_turn_is_rerun_if_its_process_wrote_no_event(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamLog, "_write", lambda _: DEADLINE_SECONDS)  # killed before the first batch
    (here, _), (there, engine) = replica(), replica()
    stream = await here.stream(QUESTION, grace=GRACE_SECONDS)
    assert [event.name for event in stream._events] == ["accepted"]
    stream_log.close(here._stream_log().name, get_settings())
    resumed, after = await there.resume(f"{stream.turn_id}:1", QUESTION, None)
    names = [event.name for event in await read(resumed)]
    assert (names[after:], engine.calls) == (["retract", "retract", *ANSWERED[1:]], 1)


async def test_an_end_written_just_before_the_process_went_is_the_end(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = await asyncio.to_thread(begun_elsewhere, "accepted")
    take_over = stream_log.take_over

    def meanwhile(stream: LoggedStream, holder: str) -> bool:
        end = [(theirs, LoggedEvent(number, name, {})) for number, name in ((2, "result"), (3, "done"))]
        stream_log.append(end, "somebody", get_settings())
        return take_over(stream, holder)

    monkeypatch.setattr(stream_log, "take_over", meanwhile)
    here, engine = replica()
    stream, _ = await here.resume("t-1:1", QUESTION, None)
    assert [event.name for event in await read(stream)] == ["accepted", "result", "done"]
    while here._narrations:
        await asyncio.wait(here._narrations)
    assert engine.calls == 0


async def test_a_stream_that_its_process_cannot_write_on_ends(replica: Replica) -> None:
    await asyncio.to_thread(begun_elsewhere, "accepted", holder="somebody")
    here, engine = replica()
    here.budget = -runner_module._RECORDING_SECONDS
    stream, _ = await here.resume("t-1:1", QUESTION, None)
    assert [event.data.get("code") for event in await read(stream)][-1] == "timeout"
    assert engine.calls == 0


def test_a_failed_stream_write_ends_that_stream_only(monkeypatch: pytest.MonkeyPatch) -> None:
    append, refused = stream_log.append, Signal()

    def refuse(events: Sequence[tuple[LoggedStream, LoggedEvent]], holder: str, settings: Settings) -> frozenset[str]:
        if events:
            refused.set()
        raise TryAgain

    writing = StreamLog(get_settings())
    kept, lost = (begun(writing, turn_id) for turn_id in ("kept", "lost"))
    writing.add(kept, Event(1, "accepted", {}))
    wait_until(lambda: bool(logged("kept")))
    monkeypatch.setattr(stream_log, "append", refuse)
    writing.add(lost, Event(1, "accepted", {}))
    assert refused.wait(DEADLINE_SECONDS)
    monkeypatch.setattr(stream_log, "append", append)
    writing.add(lost, Event(2, "done", {}))
    writing.add(kept, Event(2, "done", {}))
    writing.close()
    assert (logged("kept"), logged("lost")) == ([(1, "accepted"), (2, "done")], [])
    assert not writing._lost


async def test_a_stream_that_redis_does_not_take_is_only_here(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stream: LoggedStream, settings: Settings) -> None:
        raise TryAgain

    monkeypatch.setattr(stream_log, "begin", refuse)
    here, _ = replica()
    stream = await here.stream(QUESTION, grace=GRACE_SECONDS)
    assert [event.name for event in await read(stream)] == ANSWERED
    here.close()
    assert (stream_log.find(stream.turn_id), logged(stream.turn_id)) == (None, [])


def test_a_process_that_was_taken_over_writes_no_further() -> None:
    old, new = StreamLog(get_settings()), StreamLog(get_settings())
    theirs = begun(old, "t-1")
    old.add(theirs, Event(1, "accepted", {}))
    old.close()
    assert not stream_log.is_alive(old.name)
    wait_until(lambda: stream_log.is_alive(new.name))
    assert [stream_log.take_over(theirs, name) for name in (new.name, "third")] == [True, False]
    new.add(theirs, Event(2, "stage", {"node": "resumed"}))
    new.close()
    assert stream_log.append([(theirs, LoggedEvent(2, "token", {}))], old.name, get_settings()) == {"t-1"}
    assert logged("t-1") == [(1, "accepted"), (2, "stage")]


def test_streams_are_encrypted_and_go_with_their_person(redis_url: str) -> None:
    stream = LoggedStream("t-1", stream_log.owner(), "p", "hash")
    events = [(stream, LoggedEvent(1, "token", {"text": "Возврат"}))]
    stream_log.begin(stream, get_settings())
    stream_log.append(events, "p", get_settings())
    with Redis.from_url(redis_url) as redis:
        keys = list(redis.scan_iter(f"{redis_server.namespace(get_settings())}:*:t-1"))
        assert len(keys) == 2
        assert all(0 < redis.ttl(key) <= stream_log.RETENTION_SECONDS for key in keys)
        (stored,) = redis.xrange(next(key for key in keys if b":events:" in key))
        assert b"text" not in stored[1][b"data"]
        with acting_as(Tenant("acme", "boris")):
            assert stream_log.events("t-1", 0) == ()
        stream_log.erase(["anna"])
        assert stream_log.find("t-1") is None
        assert not list(redis.scan_iter(f"{redis_server.namespace(get_settings())}:*:t-1"))

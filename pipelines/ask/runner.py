"""Turns at work: in threads of their own, bounded in number and in time, each answered once whatever is sent twice."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from hashlib import sha256
from threading import Event
from time import monotonic, perf_counter
from uuid import uuid4

from components.answer.telling import Sink, heard_by
from components.models.calls import opened
from components.turn import Exchange, Turn
from pipelines.ask import profiles
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.events import Narrator
from pipelines.ask.steps import Watch
from pipelines.ask.streams import Stream, Streams
from pipelines.ask.usecase import Ask
from tenants import fairness, idempotency
from tenants.errors import Busy, InternalFault, OporaError, TimedOut, TryAgain, trail

log = logging.getLogger("opora.ask")

WAITING_LIMIT = 1_000
"""Questions in the queue before the next one is turned away; at 60 answers a second they would wait 17 s."""

_WITHOUT_MODELS = 0.05
"""Share of a turn's time that is left for answering without models, when they have been waited for in vain."""

_WITHOUT_MODELS_SECONDS = 0.5
"""The least of it, but never more than a quarter of the turn."""


class Runner:
    """Answers questions for connections. The pipeline is CPU work and would hold up the event loop.

    :param workers: questions answered at once without models, which is work for the processor.
    :param budget: seconds of one turn, waiting included.
    :param model_workers: questions answered at once with models, which is waiting for those.
    """

    def __init__(self, ask: Ask, workers: int, budget: float, model_workers: int = 1) -> None:
        self.ask = ask
        self.budget = budget
        self.waiting = 0
        self.streams = Streams()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ask")
        self._model_pool = ThreadPoolExecutor(model_workers, thread_name_prefix="ask-model")
        self._telling: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Finish the questions in work and drop those in the queue."""
        for pool in (self._pool, self._model_pool):
            pool.shutdown(wait=True, cancel_futures=True)

    async def answer(
        self, request: AskRequest, turn_id: str, key: str | None, history: tuple[Exchange, ...] | None = None
    ) -> bytes:
        """The `turn.v1` object as JSON.

        :param key: the client's `Idempotency-Key`.
        :param history: the conversation before, when the client keeps it; ours when None.
        :raises OporaError: the caller's mistake, or a reason to try again.
        """
        with self._waiting():
            return await self._ended(self._begun(_Asked(request, turn_id, key, history)))

    def stream(
        self, request: AskRequest, key: str | None = None, history: tuple[Exchange, ...] | None = None
    ) -> Stream:
        """Begin a turn that tells what it does.

        :param history: the conversation before, when the client keeps it; ours when None.
        :raises Busy: too many questions are waiting.
        """
        if self.waiting >= WAITING_LIMIT:
            raise Busy
        stream = self.streams.begin(str(uuid4()))
        stream.tell("accepted", {})
        narrator = Narrator()

        def watch(name: str, turn: Turn) -> None:
            for event, data in narrator.step(name, turn):
                stream.tell(event, data)

        def hear(piece: str, provisional: bool) -> None:
            for event, data in narrator.piece(piece, provisional=provisional):
                stream.tell(event, data)

        work = self._begun(_Asked(request, stream.turn_id, key, history, watch, hear))
        stream.when_left(work.drop)
        telling = asyncio.get_running_loop().create_task(self._tell(stream, narrator, work))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)
        return stream

    async def _tell(self, stream: Stream, narrator: Narrator, work: "_Work") -> None:
        """See a streamed turn to its end, whoever listens."""
        try:
            with self._waiting():
                body = await self._ended(work)
            for event, data in narrator.end(TurnAnswer.model_validate_json(body)):
                stream.tell(event, data)
            stream.tell("done", {})
        except OporaError as error:
            stream.tell("error", _told(error))
        except (asyncio.CancelledError, CancelledError):
            stream.tell("error", _told(TryAgain()))
        except Exception as error:
            log.error("turn %s: %s", stream.turn_id, trail(error))
            stream.tell("error", _told(InternalFault()))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if self.waiting >= WAITING_LIMIT:
            raise Busy
        self.waiting += 1
        try:
            with fairness.question():
                yield
        finally:
            self.waiting -= 1

    def _begun(self, asked: "_Asked") -> "_Work":
        """Put a turn into the queue of those like it."""
        stop, deadline = Event(), monotonic() + for_models(self.budget)
        pool = self._pool if profiles.chosen() == "embedded" else self._model_pool
        return _Work(asked, pool.submit(copy_context().run, self._work, asked, stop, deadline), stop)

    async def _ended(self, work: "_Work") -> bytes:
        started = perf_counter()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work.future), self.budget)
        except TimeoutError:
            work.stop.set()
            if work.future.cancelled():
                # It never began, so there is no turn to report on.
                raise TimedOut from None
            spent = (perf_counter() - started) * 1_000
            asked = work.asked
            return _encode(self.ask.give_up(asked.request, "timeout", turn_id=asked.turn_id, latency_ms=spent))

    def _work(self, asked: "_Asked", stop: Event, deadline: float) -> bytes:
        with opened(deadline, stop), heard_by(asked.hear):
            return self._answered(asked)

    def _answered(self, asked: "_Asked") -> bytes:
        key = asked.key
        if key is None:
            return _encode(self._answer(asked))
        earlier = idempotency.begin(key, sha256(asked.request.model_dump_json().encode()).hexdigest())
        if earlier is not None:
            return earlier.encode()
        try:
            answer = self._answer(asked)
        except BaseException:
            idempotency.abandon(key)
            raise
        body = _encode(answer)
        if answer.outcome == "failed":
            # Sending the same request again is the cure, so the key must not stand in the way.
            idempotency.abandon(key)
        else:
            idempotency.finish(key, body.decode())
        return body

    def _answer(self, asked: "_Asked") -> TurnAnswer:
        return self.ask.answer(asked.request, turn_id=asked.turn_id, watch=asked.watch, history=asked.history)


def for_models(budget: float) -> float:
    """Seconds of a turn of `budget` seconds in which models are waited for."""
    return budget - max(budget * _WITHOUT_MODELS, min(_WITHOUT_MODELS_SECONDS, budget / 4))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a connection wants answered, and whom to tell of it meanwhile."""

    request: AskRequest
    turn_id: str
    key: str | None
    history: tuple[Exchange, ...] | None
    watch: Watch | None = None
    hear: Sink | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """A turn in the queue or at work. `stop` tells it that nobody waits any more."""

    asked: _Asked
    future: "Future[bytes]"
    stop: Event

    def drop(self) -> None:
        """End the turn without its answer, or keep it from beginning."""
        self.future.cancel()
        self.stop.set()


def _encode(answer: TurnAnswer) -> bytes:
    return answer.encoded.encode()


def _told(error: OporaError) -> dict[str, object]:
    return {"code": error.code, "retryable": error.retryable}

"""Turns at work: in threads of their own, bounded in number and in time, each answered once whatever is sent twice."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from hashlib import sha256
from time import perf_counter
from uuid import uuid4

from components.turn import Exchange, Turn
from pipelines import problems
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.events import Narrator
from pipelines.ask.steps import Watch
from pipelines.ask.streams import Stream, Streams
from pipelines.ask.usecase import Ask
from tenants import fairness, idempotency
from tenants.errors import Busy, InternalFault, OporaError, TimedOut, TryAgain

log = logging.getLogger("opora.ask")

WAITING_LIMIT = 1_000
"""Questions in the queue before the next one is turned away; at 60 answers a second they would wait 17 s."""


class Runner:
    """Answers questions for connections. The pipeline is CPU work and would hold up the event loop.

    :param workers: questions answered at once.
    :param budget: seconds of one turn, waiting included.
    """

    def __init__(self, ask: Ask, workers: int, budget: float) -> None:
        self.ask = ask
        self.budget = budget
        self.waiting = 0
        self.streams = Streams()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="ask")
        self._telling: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Finish the questions in work and drop those in the queue."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def answer(
        self, request: AskRequest, turn_id: str, key: str | None, history: tuple[Exchange, ...] | None = None
    ) -> bytes:
        """The `turn.v1` object as JSON.

        :param key: the client's `Idempotency-Key`.
        :param history: the conversation before, when the client keeps it; ours when None.
        :raises OporaError: the caller's mistake, or a reason to try again.
        """
        with self._waiting():
            work = self._pool.submit(copy_context().run, self._work, request, turn_id, key, None, history)
            return await self._ended(work, request, turn_id)

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

        work = self._pool.submit(copy_context().run, self._work, request, stream.turn_id, key, watch, history)
        stream.when_left(work.cancel)
        telling = asyncio.get_running_loop().create_task(self._tell(stream, narrator, work, request))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)
        return stream

    async def _tell(self, stream: Stream, narrator: Narrator, work: "Future[bytes]", request: AskRequest) -> None:
        """See a streamed turn to its end, whoever listens."""
        try:
            with self._waiting():
                body = await self._ended(work, request, stream.turn_id)
            for event, data in narrator.end(TurnAnswer.model_validate_json(body)):
                stream.tell(event, data)
            stream.tell("done", {})
        except OporaError as error:
            stream.tell("error", _told(error))
        except (asyncio.CancelledError, CancelledError):
            stream.tell("error", _told(TryAgain()))
        except Exception as error:
            log.error("turn %s: %s", stream.turn_id, problems.trail(error))
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

    async def _ended(self, work: "Future[bytes]", request: AskRequest, turn_id: str) -> bytes:
        started = perf_counter()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work), self.budget)
        except TimeoutError:
            if work.cancelled():
                # It never began, so there is no turn to report on.
                raise TimedOut from None
            spent = (perf_counter() - started) * 1_000
            return _encode(self.ask.give_up(request, "timeout", turn_id=turn_id, latency_ms=spent))

    def _work(
        self,
        request: AskRequest,
        turn_id: str,
        key: str | None,
        watch: Watch | None = None,
        history: tuple[Exchange, ...] | None = None,
    ) -> bytes:
        if key is None:
            return _encode(self.ask.answer(request, turn_id=turn_id, watch=watch, history=history))
        earlier = idempotency.begin(key, sha256(request.model_dump_json().encode()).hexdigest())
        if earlier is not None:
            return earlier.encode()
        try:
            answer = self.ask.answer(request, turn_id=turn_id, watch=watch, history=history)
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


def _encode(answer: TurnAnswer) -> bytes:
    return answer.encoded.encode()


def _told(error: OporaError) -> dict[str, object]:
    return {"code": error.code, "retryable": error.retryable}

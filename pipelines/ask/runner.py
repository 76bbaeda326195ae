"""Runs turns in threads, bounded in number and time; a request that is sent twice is answered once."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from time import monotonic, perf_counter
from typing import TypeVar
from uuid import uuid4

from components.answer.token_sink import TokenSink, token_sink
from components.models.calls import collect_calls, for_models
from components.turn import Exchange
from pipelines.ask import stream_sharing
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.effects import Attempt, Settle
from pipelines.ask.steps import Step, Watch
from pipelines.ask.stream_sharing import StreamLog
from pipelines.ask.streams import GRACE_SECONDS, Stream, Streams
from pipelines.ask.turn_events import Narrator
from pipelines.ask.usecase import Ask, Engine
from pipelines.in_progress import counted
from pipelines.pools import Pool
from pipelines.sse import is_event_number
from settings import get_settings
from tenants.access.quotas import RateLimiter
from tenants.core import context
from tenants.core.errors import Busy, InternalFault, NotFound, OporaError, TimedOut, TryAgain, trail
from tenants.core.fair_semaphore import may_take_more
from tenants.storage import bus
from tenants.work import idempotency, stream_log
from tenants.work.seats import Seats
from tenants.work.stream_log import LoggedStream

log = logging.getLogger("opora.ask")
T = TypeVar("T")

WAITING_LIMIT = 1_000
"""Questions in the queue before the next one is turned away; at 60 answers a second they would wait 17 s. One tenant's
may be three quarters of them."""

_RECORDING_SECONDS = 5.0
"""Extra time for the record of a turn, beyond the turn's budget."""
_SHARING = Pool("shared-streams", 4, turns=2)
"""Threads that announce streams to other replicas, and wait for Redis."""


class Runner:
    """Answers questions for connections, in threads because the pipeline would block the event loop.

    :param workers: questions that compute at once.
    :param budget: seconds of one turn, waiting included.
    :param model_workers: questions that may wait for models or tools meanwhile.
    :param limiter: bounds how often one person may ask; None: no limit.
    """

    def __init__(self, ask: Ask, workers: int, budget: float, model_workers: int = 1) -> None:
        self.ask = ask
        self.budget = budget
        self.streams = Streams()
        self.limiter: RateLimiter | None = None
        self._waiting: Counter[str] = Counter()
        self._seats = Seats(workers, workers + model_workers)
        self._narrations: set[asyncio.Task[None]] = set()
        self._log: StreamLog | None = None

    @property
    def waiting(self) -> int:
        return self._waiting.total()

    def close(self) -> None:
        self._seats.close()
        if self._log is not None:
            self._log.close()

    async def answer(
        self, request: AskRequest, turn_id: str, key: str | None, history: tuple[Exchange, ...] | None = None
    ) -> TurnAnswer:
        """Answer a question.

        :param key: the client's `Idempotency-Key`.
        :param history: the conversation before, when the client keeps it; ours when None.
        :raises OporaError: the caller's mistake, or a reason to try again.
        """
        with self._queue_slot():
            await self._admit()
            return await self._result(self._begin(TurnJob(request, turn_id, key, history)))

    async def rehearse(
        self, request: AskRequest, history: tuple[Exchange, ...], engine: Callable[[], Engine] | None = None
    ) -> TurnAnswer:
        """Answer a question within the usual limits, but without effects: no record, no ticket, no memory.

        :param engine: builds the engine of this question; None: the tenant's.
        :raises OporaError: the caller should try again.
        """
        with self._queue_slot():
            await self._admit()
            return await self.in_seat(partial(self.ask.rehearse, request, history, engine))

    async def in_seat(self, work: Callable[[], T]) -> T:
        """Run the work of one question in a seat and within the time limit. It counts against no rate limit.

        :raises OporaError: a reason to try again.
        """
        attempt = Attempt()
        future = self._submit(attempt, work)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.budget)
        except TimeoutError:
            attempt.abandon()
            raise TimedOut from None

    def in_background(self, work: Callable[[], T]) -> T:
        """Run the work of one question in a seat and within the time limit, for a thread that asks many.

        It counts against no rate limit: ask when `fairness.has_questions` says no, so that customers come first.

        :raises OporaError: a reason to try again.
        """
        attempt = Attempt()
        future = self._submit(attempt, work)
        try:
            return future.result(self.budget)
        except CancelledError:
            raise TryAgain("shutting_down") from None
        except TimeoutError:
            future.cancel()
            attempt.abandon()
            raise TimedOut from None

    async def stream(
        self,
        request: AskRequest,
        key: str | None = None,
        history: tuple[Exchange, ...] | None = None,
        grace: float | None = 0.0,
        settle: Settle | None = None,
    ) -> Stream:
        """Begin a turn whose events can be read while it runs.

        :param history: earlier conversation if the client keeps it; the stored one if None.
        :param grace: seconds that the turn may continue without a reader, for clients that can resume; None: it
            continues to its end.
        :param settle: stores the outcome instead of a ticket and memory of the turn.
        :raises OporaError: the request is wrong, or the caller should try again; no turn was begun.
        """
        with ExitStack() as stack:
            stack.enter_context(self._queue_slot())
            await self._admit()
            turn_id = str(uuid4())
            logged = await self._share(turn_id, request) if grace == GRACE_SECONDS else None
            stream = self.streams.begin(turn_id, grace)
            if logged is not None:
                stream.on_event = partial(self._stream_log().add, logged)
            stream.publish("accepted", {})
            self._run(stream, request, key, stack.pop_all(), history, settle)
        return stream

    async def resume(self, event_id: str, request: AskRequest, key: str | None) -> tuple[Stream, int]:
        """Return the caller's stream that an event came from, also from another replica, and the event's number.

        :param request: what the stream answers: the turn is run again where its own process is gone.
        :raises NotFound: `stream_unknown`, see `Streams.resume`.
        """
        try:
            return self.streams.resume(event_id)
        except NotFound:
            turn_id, _, number = event_id.rpartition(":")
            if not bus.is_shared() or not is_event_number(number):
                raise
            logged = await asyncio.to_thread(stream_log.find, turn_id)
            if logged is None or logged.request_hash != stream_sharing.request_hash(request):
                raise
        stream = self.streams.begin(turn_id)
        if stream.is_unattended():
            task = asyncio.get_running_loop().create_task(self._follow(stream, logged, int(number), request, key))
            stream.when_abandoned(task.cancel)
            self._narrations.add(task)
            task.add_done_callback(self._narrations.discard)
        return stream, int(number)

    async def _follow(
        self, stream: Stream, logged: LoggedStream, seen: int, request: AskRequest, key: str | None
    ) -> None:
        """Bring a stream of another replica here; run its turn where that replica is gone."""
        with _publishing_errors(stream):
            # A stream whose own replica could not write on has no end to wait for.
            async with asyncio.timeout(self.budget + _RECORDING_SECONDS):
                if await stream_sharing.follow(stream, logged, self._stream_log().name):
                    return
            stream.on_event = partial(self._stream_log().add, logged)
            stream_sharing.take_back(stream, seen)
            with ExitStack() as stack:
                stack.enter_context(self._queue_slot())
                self._run(stream, request, key, stack.pop_all())

    async def _share(self, turn_id: str, request: AskRequest) -> LoggedStream | None:
        """Let the other replicas have a new stream of the caller. Returns None if they cannot."""
        if not bus.is_shared():
            return None
        return await _SHARING.run({}, partial(self._stream_log().begin, turn_id, request))

    def _stream_log(self) -> StreamLog:
        """Return the log that shares this process's streams. Call it only in the event loop, which creates it once."""
        if self._log is None:
            self._log = StreamLog(get_settings())
        return self._log

    def _run(
        self,
        stream: Stream,
        request: AskRequest,
        key: str | None,
        slot: ExitStack,
        history: tuple[Exchange, ...] | None = None,
        settle: Settle | None = None,
    ) -> None:
        """Run the turn of a stream; the slot in the queue is given back when it has ended."""
        narrator = Narrator()

        def watch(step: Step) -> None:
            for event, data in narrator.step(step):
                stream.publish(event, data)

        def on_token(piece: str, provisional: bool) -> None:
            for event, data in narrator.piece(piece, provisional=provisional):
                stream.publish(event, data)

        job = self._begin(TurnJob(request, stream.turn_id, key, history, watch, on_token, settle))
        stream.when_abandoned(job.abandon)
        narration = asyncio.get_running_loop().create_task(self._narrate(stream, narrator, job, slot))
        self._narrations.add(narration)
        narration.add_done_callback(self._narrations.discard)

    async def _narrate(self, stream: Stream, narrator: Narrator, job: "TurnJob", slot: ExitStack) -> None:
        """Follow a streamed turn to its end, whether or not a client reads it."""
        with _publishing_errors(stream):
            with slot:
                answer = await self._result(job)
            for event, data in narrator.end(answer):
                stream.publish(event, data)
            stream.publish("done", {})

    @contextmanager
    def _queue_slot(self) -> Iterator[None]:
        """Occupy a slot in the queue, before any work begins."""
        tenant_id = context.current().tenant_id
        if not may_take_more(self._waiting[tenant_id], WAITING_LIMIT - self.waiting):
            raise Busy
        with counted(self._waiting, tenant_id):
            yield

    async def _admit(self) -> None:
        if self.limiter is not None:
            await self.limiter.admit()

    def _begin(self, job: "TurnJob") -> "TurnJob":
        job.future = self._submit(job.attempt, partial(self._work, job), is_question=True)
        return job

    def _submit(self, attempt: Attempt, work: Callable[[], T], *, is_question: bool = False) -> "Future[T]":
        """Run the work of one question in a seat, its models within the time of a turn.

        :param is_question: a customer waits for the answer.
        """
        deadline = monotonic() + for_models(self.budget)

        def bounded() -> T:
            with collect_calls(deadline, attempt.stop):
                return work()

        return self._seats.submit(bounded, is_question=is_question)

    async def _result(self, job: "TurnJob") -> TurnAnswer:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.future), self.budget)
        except TimeoutError:
            if job.future.cancelled():
                # The turn never began, so there is nothing to report.
                raise TimedOut from None
            has_ended = not job.attempt.give_up()
            recorded = asyncio.wrap_future(job.future) if has_ended else asyncio.to_thread(self._give_up, job)
            try:
                return await asyncio.wait_for(recorded, _RECORDING_SECONDS)
            except TimeoutError:
                # The disk hangs: no answer without its record.
                raise TimedOut from None

    def _give_up(self, job: "TurnJob") -> TurnAnswer:
        spent = (perf_counter() - job.submitted) * 1_000
        return self.ask.give_up(job.request, "timeout", turn_id=job.turn_id, latency_ms=spent, settle=job.settle)

    def _work(self, job: "TurnJob") -> TurnAnswer:
        with token_sink(job.on_token):
            return self._answer(job) if job.key is None else self._answer_once(job, job.key)

    def _answer_once(self, job: "TurnJob", key: str) -> TurnAnswer:
        # Requests of earlier versions had neither field; those under way keep their digest.
        later = {name for name in ("context", "contact") if getattr(job.request, name) is None}
        asked = job.request.model_dump_json(exclude=later)
        if job.history is not None:
            asked += f"\n{job.history!r}"
        earlier = idempotency.begin(key, sha256(asked.encode("utf-8", "surrogatepass")).hexdigest())
        if earlier is not None:
            return TurnAnswer.model_validate_json(earlier)
        try:
            answer = self._answer(job)
        except BaseException:
            idempotency.abandon(key)
            raise
        if answer.outcome == "failed" or job.attempt.settle() != "awaited":
            # The client should retry with the same request, so its key must not block that.
            idempotency.abandon(key)
        else:
            idempotency.finish(key, answer.encoded)
        return answer

    def _answer(self, job: "TurnJob") -> TurnAnswer:
        return self.ask.answer(
            job.request,
            turn_id=job.turn_id,
            watch=job.watch,
            history=job.history,
            attempt=job.attempt,
            settle=job.settle,
        )


@dataclass(slots=True)
class TurnJob:
    """A question of a connection, queued or running, with its watchers."""

    request: AskRequest
    turn_id: str
    key: str | None
    history: tuple[Exchange, ...] | None
    watch: Watch | None = None
    on_token: TokenSink | None = None
    settle: Settle | None = None
    attempt: Attempt = field(default_factory=Attempt)
    future: "Future[TurnAnswer]" = field(init=False)
    submitted: float = field(default_factory=perf_counter)

    def abandon(self) -> None:
        """Cancel the turn before it begins, or end it without effects: no client will read the answer."""
        self.future.cancel()
        self.attempt.abandon()


@contextmanager
def _publishing_errors(stream: Stream) -> Iterator[None]:
    """End the stream with an `error` event if the block fails."""
    try:
        yield
    except OporaError as error:
        fault = error
    except TimeoutError:
        fault = TimedOut()
    except (asyncio.CancelledError, CancelledError):
        fault = TryAgain()
    except Exception as error:
        log.error("turn %s: %s", stream.turn_id, trail(error))
        fault = InternalFault()
    else:
        return
    stream.publish("error", {"code": fault.code, "retryable": fault.retryable})

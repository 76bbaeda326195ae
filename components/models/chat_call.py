"""One call of one language model: admitted, seated, bounded in time, recorded."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from time import monotonic
from typing import TypeAlias

from haystack.dataclasses import ChatMessage, StreamingChunk

from components.ingest.tokens import count_tokens
from components.models.attempts import Background
from components.models.breaker import Permit, Upstream
from components.models.calls import Call, CallOutcome, Calls, Tier
from components.models.failures import Interrupted, ModelFailed
from components.models.providers import Generator, is_complete, prepared, provider, tokens, warm_up
from tenants import seats, spending

log = logging.getLogger("opora.models")

OnText: TypeAlias = Callable[[str], None]
"""Called with each piece of a reply as it arrives, in a thread of its own but in the caller's context."""

_POLL_SECONDS = 0.25
_WARM_UP_LOCK = Lock()


@dataclass(frozen=True, slots=True)
class Model:
    """A model to call.

    :param timeout: most seconds of one call.
    :param price: US dollars for a million tokens in and out.
    :param is_capped: whether calls stop when the tenant's daily budget is spent.
    :param schema_arguments: how its generator takes a JSON schema, if the author configured that.
    """

    generator: Generator
    upstream: Upstream
    timeout: float
    price: Sequence[float] | None = None
    is_capped: bool = False
    schema_arguments: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, as `ChatModels.ask` describes it."""

    messages: Sequence[ChatMessage]
    step: str
    prompt: str
    tier: Tier
    temperature: float
    schema: Mapping[str, object] | None
    on_text: OnText | None


class ChatCall:
    """One call of one model within the bounds of a turn."""

    def __init__(self, model: Model, request: Request, calls: Calls) -> None:
        self._model = model
        self._request = request
        self._calls = calls
        self._started_at = monotonic()
        self._tokens_used = (0, 0)
        self._prompt_tokens = sum(count_tokens(message.text or "") for message in request.messages)

    def run(self) -> str:
        """The reply; recorded among the turn's calls however it ends. Raises `ModelFailed`."""
        outcome: CallOutcome = "server_error"
        try:
            self._check_bounds()
            with self._model.upstream.breaker.call() as permit:
                text = self._reply(permit)
            outcome = "ok"
            return text
        except ModelFailed as failure:
            outcome = failure.outcome
            raise
        finally:
            self._record(outcome)

    def _check_bounds(self) -> None:
        if self._calls.stop.is_set():
            raise ModelFailed("stopped")
        if self._budget() <= 0:
            raise ModelFailed("timeout")
        if self._model.upstream.pace.seconds(self._prompt_tokens) > self._budget():
            # Better the time for who stands in.
            raise ModelFailed("timeout")
        if self._model.is_capped and _is_spent():
            raise ModelFailed("too_dear")

    def _reply(self, permit: Permit) -> str:
        with seats.waiting():
            if not self._model.upstream.acquire(self._budget()):
                raise ModelFailed("busy")
            seated_at, pace = monotonic(), self._model.upstream.pace
            listener = _Listener(self._request.on_text, self._calls.stop)
            call = Background("model", self._model.upstream, partial(self._generate, listener))
            outcome, text = self._wait(call, listener), ""
        if outcome == "ok":
            (reply,) = call.results
            self._tokens_used, text = tokens(reply), reply.text or ""
            outcome = "malformed" if not is_complete(reply) else "ok" if text.strip() else "empty"
        if outcome == "ok":
            pace.record(self._prompt_tokens, count_tokens(text), monotonic() - seated_at)
            return text
        if outcome == "timeout":
            pace.record_timeout(self._prompt_tokens, monotonic() - seated_at)
        if self._calls.remaining() <= 0:
            # The turn ran out of time, which says nothing about the model.
            permit.release_trial()
        raise (Interrupted if listener.has_emitted else ModelFailed)(outcome)

    def _generate(self, listener: "_Listener") -> ChatMessage:
        generator, request = self._model.generator, self._request
        with _WARM_UP_LOCK:  # of two clients created at once nobody would close one
            warm_up(generator)
        target, arguments = prepared(
            generator,
            schema=request.schema,
            temperature=request.temperature,
            streamed=request.on_text is not None,
            schema_arguments=self._model.schema_arguments,
        )
        callback = None if request.on_text is None else listener.receive
        messages = list(request.messages)
        return target.run(messages, streaming_callback=callback, generation_kwargs=arguments)["replies"][0]

    def _budget(self) -> float:
        return min(self._started_at + self._model.timeout - monotonic(), self._calls.remaining())

    def _wait(self, call: Background[ChatMessage], listener: "_Listener") -> CallOutcome:
        """The outcome of the call, or why it was cancelled."""
        while not call.ended.wait(max(0.0, min(_POLL_SECONDS, self._budget()))):
            if self._calls.stop.is_set():
                listener.cancel()
                return "stopped"
            if self._budget() <= 0:
                listener.cancel()
                return "timeout"
        if call.outcome not in ("ok", "stopped"):
            generator = self._model.generator
            log.warning("%s %s: %s", provider(generator), generator.model, call.fault)
        return call.outcome

    def _record(self, outcome: CallOutcome) -> None:
        generator, request, price = self._model.generator, self._request, self._model.price
        cost = None
        if price is not None and any(self._tokens_used):
            cost = (
                sum(count * token_price for count, token_price in zip(self._tokens_used, price, strict=True))
                / 1_000_000
            )
            _spend(cost)
        self._calls.add(
            Call(
                step=request.step,
                provider=provider(generator),
                model=generator.model,
                prompt=request.prompt,
                tier=request.tier,
                started=self._started_at,
                milliseconds=(monotonic() - self._started_at) * 1_000,
                outcome=outcome,
                prompt_tokens=self._tokens_used[0],
                completion_tokens=self._tokens_used[1],
                cost_usd=cost,
            )
        )


class _Listener:
    """Passes a reply on until the call is cancelled.

    Raising from the callback is the only cancellation that every generator supports. Ollama's client then closes its
    connection at once; OpenAI's does when its stream, which refers to itself, is collected as garbage: haystack-ai 3.4
    leaves it open. A call that streams nothing, or has not begun to, runs until its own timeout and keeps its seat.
    """

    def __init__(self, on_text: OnText | None, stop: Event) -> None:
        self.has_emitted = False
        self._on_text = on_text
        self._stop = stop
        self._cancelled = False
        self._lock = Lock()

    def receive(self, chunk: StreamingChunk) -> None:
        """For the generator."""
        with self._lock:
            if self._cancelled or self._stop.is_set():
                raise ModelFailed("stopped")
            if chunk.content and self._on_text is not None:
                self.has_emitted = True
                self._on_text(chunk.content)

    def cancel(self) -> None:
        """Pass nothing more on. Returns when the chunk being passed on has been handled."""
        with self._lock:
            self._cancelled = True


def _is_spent() -> bool:
    """Whether the daily budget is spent; true when that cannot be determined."""
    try:
        return spending.is_spent()
    except Exception as error:
        log.error("what has been spent is unknown: %s", type(error).__name__)
        return True


def _spend(cost: float) -> None:
    """Count the cost of a call. A failure to count it does not fail the answer."""
    try:
        spending.spend(cost)
    except Exception as error:
        log.error("%.6f USD are not counted: %s", cost, type(error).__name__)

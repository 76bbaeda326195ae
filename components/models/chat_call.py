"""A single call of a language model, with admission control, a time limit and a record."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import mul
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from haystack.dataclasses import ChatMessage, StreamingChunk

from components.models.attempts import in_background
from components.models.call_format import Generator, is_complete, is_cut_off, prepared, provider, tokens
from components.models.calls import Call, CallOutcome, Calls, Tier, caller
from components.models.failures import Interrupted, ModelFailed, failure_of
from tenants.access import spending
from tenants.core.context import tenant_id

if TYPE_CHECKING:
    from components.models.chat import ChatModels

log = logging.getLogger("opora.models")

OnText: TypeAlias = Callable[[str], None]
"""Callback for each piece of a reply. It runs in a separate thread with the caller's context."""

_WARM_UP_LOCK = Lock()
_BYTES_OF_TOKEN = 4
"""Bytes of UTF-8 in a token: about four letters of English and two of Russian."""
_UNBILLED: frozenset[CallOutcome] = frozenset({"refused", "server_error", "rate_limited"})
"""Outcomes without a bill, unless a part of the reply has arrived."""


@dataclass(frozen=True, slots=True)
class Request:
    """Arguments of a call, as described for `ChatModels.ask`."""

    messages: Sequence[ChatMessage]
    step: str
    prompt: str
    tier: Tier
    temperature: float
    schema: Mapping[str, object] | None
    on_text: OnText | None


class ChatCall:
    """A call of one language model within the limits of a turn."""

    def __init__(self, models: "ChatModels", generator: Generator, request: Request, calls: Calls) -> None:
        self._models = models
        self._generator = generator
        self._request = request
        self._calls = calls
        self._upstream = models.upstream(generator)
        self._started_at = monotonic()
        self._ends_at = self._started_at + models.timeout
        self._is_loading = False
        self._usage = (0, 0)
        self._is_sent = self._is_billed = False
        self._received_bytes = 0
        self._cost: float | None = None
        self._billing = Lock()

    def run(self) -> str:
        """Return the reply; record the call among the turn's, however it ends. Raises `ModelFailed`."""
        outcome: CallOutcome = "server_error"
        try:
            if self._calls.stop.is_set():
                raise ModelFailed("stopped")
            if self._remaining() <= 0:
                raise ModelFailed("timeout", is_blameless=True)
            with self._upstream.call(tenant_id() or ""):
                text = self._reply()
            outcome = "ok"
            return text
        except ModelFailed as failure:
            outcome = failure.outcome
            raise
        finally:
            self._record(outcome)

    def _reply(self) -> str:
        if loading := self._upstream.loading_seconds(self._models.loading):
            self._is_loading = True
            self._ends_at = max(self._ends_at, monotonic() + loading)
        listener = _Listener(self._request.on_text, self._calls.stop, self._on_chunk)
        name = f"{provider(self._generator)} {self._generator.model}"
        work = partial(self._generate, listener)
        try:
            reply = in_background(
                name, self._upstream, work, self._remaining, self._calls.stop, is_loading=lambda: self._is_loading
            )
        except ModelFailed as failure:
            outcome, is_blameless = failure.outcome, failure.is_blameless
            listener.cancel()
        else:
            self._upstream.record_loaded()
            text = reply.text or ""
            if is_complete(reply) and text.strip():
                return text
            # The model has ended its reply like this, which depends on what it was asked.
            outcome, is_blameless = "empty" if is_complete(reply) else "malformed", not is_cut_off(reply)
        # The turn ran out of time, or the model was not in memory yet: neither is the provider's fault.
        is_blameless |= self._calls.remaining() <= 0 or (self._is_loading and outcome == "timeout")
        raise (Interrupted if listener.has_emitted else ModelFailed)(outcome, is_blameless=is_blameless)

    def _generate(self, listener: "_Listener") -> ChatMessage:
        generator, request = self._generator, self._request
        if self._models.prices and _is_spent():  # others may have spent while this call waited for its seat
            raise ModelFailed("too_dear")
        if hasattr(generator, "warm_up"):
            with _WARM_UP_LOCK:  # of two clients created at once, one would stay open
                generator.warm_up()
        target, arguments = prepared(
            generator,
            schema=request.schema,
            temperature=request.temperature,
            streamed=request.on_text is not None,
            schema_arguments=self._models.schema_arguments_of(generator),
        )
        callback = None if request.on_text is None else listener.receive
        messages = list(request.messages)
        self._is_sent = True
        try:
            replies = target.run(messages, streaming_callback=callback, generation_kwargs=arguments)["replies"]
            reply: ChatMessage = replies[0]
            self._usage, self._received_bytes = tokens(reply), len((reply.text or "").encode())
        except BaseException as error:
            self._bill(failure_of(error).outcome)
            raise
        self._bill("ok")  # before the next call gets the seat, and asks what has been spent
        return reply

    def _on_chunk(self, chunk: StreamingChunk) -> None:
        reasoning = chunk.reasoning.reasoning_text if chunk.reasoning else ""
        self._received_bytes += len(f"{chunk.content}{reasoning}".encode())
        self._upstream.record_loaded()
        if self._is_loading:
            self._is_loading = False
            self._ends_at = monotonic() + self._models.timeout

    def _remaining(self) -> float:
        return min(self._ends_at - monotonic(), self._calls.remaining())

    def _record(self, outcome: CallOutcome) -> None:
        generator, request = self._generator, self._request
        self._bill(outcome)
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
                prompt_tokens=self._usage[0],
                completion_tokens=self._usage[1],
                cost_usd=self._cost,
                caller=caller(),
                request="\n\n".join(f"[{message.role.value}]\n{message.text or ''}" for message in request.messages),
            )
        )

    def _bill(self, outcome: CallOutcome) -> None:
        """Count the cost of the call, once: when it ends, or is abandoned."""
        with self._billing:
            if self._is_billed:
                return
            self._is_billed = True
            price, billed = self._models.prices.get(self._generator.model), self._billed_tokens(outcome)
            if price is not None and any(billed):
                self._cost = sum(map(mul, billed, price)) / 1_000_000
                _spend(self._cost)

    def _billed_tokens(self, outcome: CallOutcome) -> tuple[float, float]:
        """Return the prompt and completion tokens that the provider charges for, estimated if it has not reported them.

        Threat: a customer leaves during each answer. The provider reports nothing, and the cap is never reached.
        """
        if any(self._usage) or not self._is_sent or (outcome in _UNBILLED and not self._received_bytes):
            return self._usage
        prompt_bytes = sum(len((message.text or "").encode()) for message in self._request.messages)
        return prompt_bytes / _BYTES_OF_TOKEN, self._received_bytes / _BYTES_OF_TOKEN


class _Listener:
    """Passes a reply on until the call is cancelled.

    Raising from the callback is the only cancellation that every generator supports. Ollama's client then closes its
    connection at once; OpenAI's does when its stream, which refers to itself, is collected as garbage: haystack-ai 3.4
    leaves it open. A call that streams nothing, or has not begun to, runs until its own timeout and keeps its seat.
    """

    def __init__(self, on_text: OnText | None, stop: Event, on_chunk: Callable[[StreamingChunk], None]) -> None:
        self.has_emitted = False
        self._on_text = on_text
        self._stop = stop
        self._on_chunk = on_chunk
        self._cancelled = False
        self._lock = Lock()

    def receive(self, chunk: StreamingChunk) -> None:
        """Take a chunk from the generator."""
        with self._lock:
            if self._cancelled or self._stop.is_set():
                raise ModelFailed("stopped")
            self._on_chunk(chunk)
            if chunk.content and self._on_text is not None:
                self.has_emitted = True
                self._on_text(chunk.content)

    def cancel(self) -> None:
        """Pass nothing more on. Return when the chunk being passed on has been handled."""
        with self._lock:
            self._cancelled = True


def _is_spent() -> bool:
    """Return whether the daily budget is spent; true when that cannot be determined."""
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

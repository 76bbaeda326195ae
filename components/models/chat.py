"""Asking a language model: text, or one of a few declared failures, in bounded time and for bounded money."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from threading import Event, Lock, Thread
from time import monotonic

from haystack.dataclasses import ChatMessage, StreamingChunk

from components.models.breaker import Line, line
from components.models.calls import Call, CallOutcome, Calls, Tier, current
from components.models.failures import Interrupted, ModelFailed, outcome_of
from components.models.providers import Generator, address, close, is_whole, prepared, provider, tokens, warm_up
from components.nested import Nested
from tenants import spending

log = logging.getLogger("opora.models")

Hear = Callable[[str], None]
"""Told of each piece of a reply as it comes, in a thread of its own but in the caller's context."""

_LOOK_EVERY = 0.25
_WARMING = Lock()
_PROVIDERS_FAULTS: frozenset[CallOutcome] = frozenset(
    {"timeout", "refused", "server_error", "rate_limited", "malformed", "empty"}
)


class ChatModels(Nested):
    """The models of a pipeline: one that is quick, one that is thorough, and one for when both fail.

    A call goes to the tier asked for, then to the other, then to `fallback`; the ones not named are left out. It never
    takes longer than `timeout`, nor than the turn has left. A model that failed `failures` times in a row is left alone
    for `pause` seconds, by every component of this process that names the same model at the same address.

    :param fast: any Haystack chat generator.
    :param strong: another one, for complex questions and thorough answers.
    :param fallback: another one, best of another provider.
    :param timeout: most seconds of one call.
    :param failures: failures in a row that open the circuit.
    :param pause: seconds until one call may try again.
    :param concurrent: calls of one model at once; further ones wait.
    :param prices: US dollars for a million tokens in and out, by model: `{gpt-5-mini: [0.25, 2.0]}`.
    :param schema_arguments: how a JSON schema is passed to a generator that takes it another way than Ollama's and
        OpenAI's do: `{fallback: {response_format: {type: json_object, schema: "{schema}"}}}`; `{fallback: {}}` where
        it takes none.
    """

    def __init__(
        self,
        fast: Generator,
        strong: Generator | None = None,
        fallback: Generator | None = None,
        timeout: float = 30,
        failures: int = 5,
        pause: float = 30,
        concurrent: int = 16,
        prices: Mapping[str, Sequence[float]] | None = None,
        schema_arguments: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        self.fast = fast
        self.strong = strong
        self.fallback = fallback
        self.timeout = timeout
        self.failures = failures
        self.pause = pause
        self.concurrent = concurrent
        self.prices = dict(prices or {})
        self.schema_arguments = dict(schema_arguments or {})
        if unknown := self.schema_arguments.keys() - {"fast", "strong", "fallback"}:
            raise ValueError(f"schema_arguments of no model: {', '.join(sorted(unknown))}")

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        step: str,
        prompt: str,
        temperature: float,
        tier: Tier = "fast",
        schema: Mapping[str, object] | None = None,
        on_text: Hear | None = None,
    ) -> str:
        """The model's reply.

        :param step: who asks, for traces and costs.
        :param prompt: name and version of what is asked.
        :param schema: the JSON schema of the reply. It is asked for, not checked: who asks does that.
        :param on_text: told of the reply piece by piece. No other model is asked once it has heard something.
        :raises ModelFailed: no model answered; `Interrupted` when one began to.
        """
        calls = current()
        failed = ModelFailed("refused")
        for generator in self._chain(tier):
            attempt = _Attempt(self, generator, calls, step, prompt, tier)
            try:
                return attempt.run(messages, schema, temperature, on_text)
            except Interrupted:
                raise
            except ModelFailed as failure:
                failed = failure
            if failed.outcome in ("stopped", "too_dear") or calls.remaining() <= 0:
                break
        raise failed

    def close(self) -> None:
        """Let go of the connections to the models. They are made again when somebody asks."""
        for generator in self._chain("fast"):
            close(generator)

    def line(self, generator: Generator) -> Line:
        """What all who call this model share."""
        key = (provider(generator), address(generator), generator.model)
        return line(key, failures=self.failures, pause=self.pause, concurrent=self.concurrent)

    def cost(self, model: str, used: tuple[int, int]) -> float | None:
        """US dollars for these tokens; None without a price."""
        price = self.prices.get(model)
        return None if price is None else sum(n * each for n, each in zip(used, price, strict=True)) / 1_000_000

    def schema_arguments_of(self, generator: Generator) -> Mapping[str, object] | None:
        """How this generator takes a JSON schema, where the author has said so."""
        named = (form for name, form in self.schema_arguments.items() if getattr(self, name) is generator)
        return next(named, None)

    def _chain(self, tier: Tier) -> Iterator[Generator]:
        first, second = (self.fast, self.strong) if tier == "fast" else (self.strong, self.fast)
        for generator in (first, second, self.fallback):
            if generator is not None:
                yield generator


class _Attempt:
    """One call of one model."""

    def __init__(
        self, models: ChatModels, generator: Generator, calls: Calls, step: str, prompt: str, tier: Tier
    ) -> None:
        self.models = models
        self.generator = generator
        self.line = models.line(generator)
        self.calls = calls
        self.step = step
        self.prompt = prompt
        self.tier: Tier = tier
        self.started = monotonic()

    def run(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, object] | None,
        temperature: float,
        on_text: Hear | None,
    ) -> str:
        """The reply, noted among the turn's calls however it ends."""
        self._admit()
        worker = self._begun(messages, schema, temperature, on_text)
        outcome = self._wait(worker)
        reply = worker.reply
        used = tokens(reply) if reply is not None else (0, 0)
        text = (reply.text or "") if reply is not None else ""
        if outcome == "ok" and reply is not None:
            outcome = "malformed" if not is_whole(reply) else "ok" if text.strip() else "empty"
        self._settle(outcome, used)
        if outcome == "ok":
            return text
        raise (Interrupted if worker.heard else ModelFailed)(outcome)

    def _begun(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, object] | None,
        temperature: float,
        on_text: Hear | None,
    ) -> "_Worker":
        """The call in a thread of its own."""
        worker = _Worker(on_text, self.calls.stop)
        prepare = partial(
            prepared,
            schema=schema,
            temperature=temperature,
            streamed=on_text is not None,
            schema_arguments=self.models.schema_arguments_of(self.generator),
        )

        def work() -> None:
            try:
                worker.work(self.generator, list(messages), prepare)
            finally:
                # A call that was given up keeps its seat until it ends: the provider is still busy with it.
                self.line.leave_seat()

        Thread(target=copy_context().run, args=(work,), name="model", daemon=True).start()
        return worker

    def _admit(self) -> None:
        """Raises `ModelFailed` when the call may not be made."""
        refusal: CallOutcome | None = None
        if self.calls.stop.is_set():
            refusal = "stopped"
        elif self._budget() <= 0:
            refusal = "timeout"
        elif self.models.prices and _is_spent():
            refusal = "too_dear"
        elif not self.line.breaker.admit():
            refusal = "open_circuit"
        elif not self.line.take_seat(self._budget()):
            self.line.breaker.unsettled()
            refusal = "busy"
        if refusal is not None:
            self._note(refusal, (0, 0))
            raise ModelFailed(refusal)

    def _budget(self) -> float:
        return min(self.started + self.models.timeout - monotonic(), self.calls.remaining())

    def _wait(self, worker: "_Worker") -> CallOutcome:
        """How the call ended, or why it is waited for no longer."""
        while not worker.ended.wait(max(0.0, min(_LOOK_EVERY, self._budget()))):
            if self.calls.stop.is_set():
                worker.give_up()
                return "stopped"
            if self._budget() <= 0:
                worker.give_up()
                return "timeout"
        if worker.failure not in ("ok", "stopped"):
            log.warning("%s %s: %s", provider(self.generator), self.generator.model, worker.fault)
        return worker.failure

    def _settle(self, outcome: CallOutcome, used: tuple[int, int]) -> None:
        """Tell the breaker, the purse and the turn."""
        if outcome == "ok":
            self.line.breaker.worked()
        elif outcome in _PROVIDERS_FAULTS and self.calls.remaining() > 0:
            self.line.breaker.failed()
        else:
            self.line.breaker.unsettled()
        self._note(outcome, used)

    def _note(self, outcome: CallOutcome, used: tuple[int, int]) -> None:
        cost = self.models.cost(self.generator.model, used) if any(used) else None
        if cost:
            _spend(cost)
        self.calls.add(
            Call(
                step=self.step,
                provider=provider(self.generator),
                model=self.generator.model,
                prompt=self.prompt,
                tier=self.tier,
                started=self.started,
                milliseconds=(monotonic() - self.started) * 1_000,
                outcome=outcome,
                prompt_tokens=used[0],
                completion_tokens=used[1],
                cost_usd=cost,
            )
        )


class _Worker:
    """Runs a generator in a thread that can be left behind: no client of a provider bounds a whole call in time."""

    def __init__(self, on_text: Hear | None, stop: Event) -> None:
        self.ended = Event()
        self.reply: ChatMessage | None = None
        self.failure: CallOutcome = "ok"
        self.fault = ""
        self.heard = False
        self._on_text = on_text
        self._stop = stop
        self._given_up = False
        self._lock = Lock()

    def work(
        self,
        generator: Generator,
        messages: list[ChatMessage],
        prepare: Callable[[Generator], tuple[Generator, dict[str, object]]],
    ) -> None:
        """Call the model, and keep what comes of it."""
        try:
            with _WARMING:  # two clients made at once would be one that nobody closes
                warm_up(generator)
            asked, options = prepare(generator)
            hear = None if self._on_text is None else self._hear
            replies = asked.run(messages, streaming_callback=hear, generation_kwargs=options)["replies"]
            self.reply = replies[0]
        except BaseException as error:
            # Not the exception itself: it holds on to frames, and those to the connection that has to end now.
            self.failure, self.fault = outcome_of(error), type(error).__name__
        finally:
            self.ended.set()

    def give_up(self) -> None:
        """Hear nothing more. Returns when what is being heard has been dealt with."""
        with self._lock:
            self._given_up = True

    def _hear(self, chunk: StreamingChunk) -> None:
        with self._lock:
            if self._given_up or self._stop.is_set():
                raise ModelFailed("stopped")
            if chunk.content and self._on_text is not None:
                self.heard = True
                self._on_text(chunk.content)


def _is_spent() -> bool:
    """Whether nothing more may be spent today; true where nobody can tell."""
    try:
        return spending.is_spent()
    except Exception as error:
        log.error("what has been spent is unknown: %s", type(error).__name__)
        return True


def _spend(cost: float) -> None:
    """Count what a call has cost. The answer is there, and does not fail for a sum."""
    try:
        spending.spend(cost)
    except Exception as error:
        log.error("%.6f USD are not counted: %s", cost, type(error).__name__)

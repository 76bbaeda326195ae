"""Calling a language model: a text or a declared failure, within bounded time and cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from haystack.dataclasses import ChatMessage

from components.models.breaker import Upstream, upstream
from components.models.call_format import Generator, address, provider
from components.models.calls import Tier, current
from components.models.chat_call import ChatCall, OnText, Request
from components.models.failures import Interrupted, ModelFailed
from components.models.prompts import FOLDER, Prompt, prompt
from components.serialisation import Nested


@dataclass(eq=False)
class ChatModels(Nested):
    """The models of a pipeline: a fast one, a strong one, and a fallback for when both fail.

    A call goes to the requested tier, then to the other, then to `fallback`; those not configured are skipped. It never
    takes longer than `timeout` or the remaining time of the turn. A model that failed `failures` times in a row is
    skipped for `pause` seconds, by every component of this process that uses the same model at the same address.

    Haystack 3.4's `FallbackChatGenerator` cannot be this chain: it goes on to the next model after any exception, so
    also when a client has left or when half a reply has been streamed; it leaves time limits to the generators, whose
    timeouts bound the wait for a chunk; it passes the same `generation_kwargs` to all, while providers take a schema in
    different ways; and its `RuntimeError` keeps neither the outcome nor which model failed how.

    :param fast: any Haystack chat generator.
    :param strong: another generator, for complex questions and thorough answers.
    :param fallback: another generator, preferably of another provider.
    :param timeout: maximum number of seconds of one call.
    :param loading: maximum number of seconds until the first token if a local model was not called for five minutes and
        may have to be loaded first. Timeouts during that time do not count as failures. The generator's own `timeout`
        must be as long. Ollama's generator takes `keep_alive`, which keeps the model in memory: `keep_alive: 30m`.
    :param failures: consecutive failures that open the circuit.
    :param pause: seconds until one call may try again.
    :param concurrent: calls of one model at once; the rest wait, and tenants take turns.
    :param prices: US dollars for a million tokens in and out, by model: `{gpt-5-mini: [0.25, 2.0]}`.
    :param schema_arguments: how a JSON schema is passed to a generator that differs from Ollama's and OpenAI's:
        `{fallback: {response_format: {type: json_object, schema: "{schema}"}}}`; `{fallback: {}}` if it takes none.
    :param prompts: the folder of the prompts, below the folder of pipelines.
    :param without_examples: names of prompts that are sent without their example turns. Small models need those;
        capable ones follow the rules and the schema.
    """

    fast: Generator
    strong: Generator | None = None
    fallback: Generator | None = None
    timeout: float = 30
    failures: int = 5
    pause: float = 30
    concurrent: int = 16
    prices: Mapping[str, Sequence[float]] = field(default_factory=dict)
    schema_arguments: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    prompts: str = FOLDER
    loading: float = 0
    without_examples: Sequence[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if unknown := self.schema_arguments.keys() - {"fast", "strong", "fallback"}:
            raise ValueError(f"schema_arguments of no model: {', '.join(sorted(unknown))}")

    def prompt(self, name: str, locale: str) -> Prompt:
        """Return a prompt for these models, in this language or, if missing, the other."""
        asked = prompt(name, locale, self.prompts)
        return asked.without_examples() if name in self.without_examples else asked

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        step: str,
        prompt: str,
        temperature: float,
        tier: Tier = "fast",
        schema: Mapping[str, object] | None = None,
        on_text: OnText | None = None,
    ) -> str:
        """Return the model's reply.

        :param step: the calling step, for traces and costs.
        :param prompt: name and version of the prompt.
        :param schema: the JSON schema of the reply. It is requested, not checked: that is left to the caller.
        :param on_text: called with each chunk of the reply. Once it has been called, no other model is tried.
        :raises ModelFailed: no model answered; `Interrupted` when one began to.
        """
        calls = current()
        request = Request(messages, step, prompt, tier, temperature, schema, on_text)
        failed = ModelFailed("refused")
        for generator in self._chain(tier):
            try:
                return ChatCall(self, generator, request, calls).run()
            except Interrupted:
                raise
            except ModelFailed as failure:
                failed = failure
            if failed.outcome in ("stopped", "too_dear") or calls.remaining() <= 0:
                break
        raise failed

    def close(self) -> None:
        """Close the connections to the models. The next call opens others."""
        for generator in self._chain("fast"):
            if hasattr(generator, "close"):
                generator.close()

    def upstream(self, generator: Generator) -> Upstream:
        """Return the breakers and the seats that all callers of this model share."""
        key = (provider(generator), address(generator), generator.model)
        return upstream(key, failures=self.failures, pause=self.pause, concurrent=self.concurrent)

    def schema_arguments_of(self, generator: Generator) -> Mapping[str, object] | None:
        """Return how this model takes a JSON schema, if the author has configured that."""
        named = (form for name, form in self.schema_arguments.items() if getattr(self, name) is generator)
        return next(named, None)

    def _chain(self, tier: Tier) -> Iterator[Generator]:
        first, second = (self.fast, self.strong) if tier == "fast" else (self.strong, self.fast)
        for generator in (first, second, self.fallback):
            if generator is not None:
                yield generator

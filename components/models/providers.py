"""What differs between providers: how to ask for JSON, where the address stands, how an ending is told."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

from haystack.dataclasses import ChatMessage, StreamingChunk

if TYPE_CHECKING:  # importing OpenAI's client takes half a second, which no start without it should pay
    from components.models.ollama import OllamaChatGenerator


@runtime_checkable
class Generator(Protocol):
    """Any Haystack chat generator."""

    model: str

    def run(
        self,
        messages: list[ChatMessage],
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
        generation_kwargs: dict[str, object] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """The model's replies."""


def warm_up(generator: Generator) -> None:
    """Make the generator's client, where it has one to make."""
    make = getattr(generator, "warm_up", None)
    if make is not None:
        make()


def close(generator: Generator) -> None:
    """Let go of the generator's client, where it has one. It makes another when it is asked again."""
    end = getattr(generator, "close", None)
    if end is not None:
        end()


def provider(generator: Generator) -> str:
    """Who serves the model, for people: `ollama`, `openai`, …"""
    return type(generator).__name__.removesuffix("ChatGenerator").lower()


def address(generator: Generator) -> str:
    """Where the model is reached, empty where the generator does not say."""
    for name in ("url", "api_base_url"):
        if isinstance(found := getattr(generator, name, None), str):
            return found
    return ""


def prepared(
    generator: Generator, *, schema: Mapping[str, object] | None, temperature: float, streamed: bool
) -> tuple[Generator, dict[str, object]]:
    """The generator that answers in the form asked for, and the arguments to run it with.

    What a pipeline author has set in `generation_kwargs` stands over the temperature asked for here: some models take
    one value only.
    """
    own = getattr(generator, "generation_kwargs", None) or {}
    given: dict[str, object] = {"temperature": temperature}
    if _is_made_from(generator, "OpenAIChatGenerator"):
        if streamed:
            given["stream_options"] = {"include_usage": True}
        if schema is not None:
            described = {"name": "reply", "strict": True, "schema": dict(schema)}
            given["response_format"] = {"type": "json_schema", "json_schema": described}
    asked = generator
    if schema is not None and _is_ollama(generator):
        # It takes the form of its answers as its own, not when it is run. The copy speaks through the same client.
        asked = copy(generator)
        asked.response_format = dict(schema)
    return asked, {name: value for name, value in given.items() if name not in own}


def _is_ollama(generator: Generator) -> "TypeGuard[OllamaChatGenerator]":
    return _is_made_from(generator, "OllamaChatGenerator")


def _is_made_from(generator: Generator, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(generator).__mro__)


def is_whole(reply: ChatMessage) -> bool:
    """Whether the model came to an end: a broken connection looks like one, and so does a limit of tokens."""
    told = reply.meta.get("finish_reason", "stop")
    return bool(told) and told not in ("length", "content_filter")


def tokens(reply: ChatMessage) -> tuple[int, int]:
    """How many tokens went in and came out, 0 where the provider does not say."""
    usage = reply.meta.get("usage") or {}
    return int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)

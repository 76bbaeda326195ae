"""Form of a call to a chat generator: how it takes a schema, and how to tell whether its reply is complete.

A new provider needs no code: name its Haystack chat generator in a profile (`pipelines/ask/profiles`).
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Protocol, runtime_checkable

from haystack.dataclasses import ChatMessage, StreamingChunk

SCHEMA = "{schema}"
"""Placeholder for the schema in the arguments that an author writes."""


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
        """Return the model's replies."""


def provider(generator: Generator) -> str:
    """Return the provider's name for people: `ollama`, `openai`, …"""
    return provider_named(type(generator).__name__)


def provider_named(generator: str) -> str:
    """Return the same for the name of a generator's class."""
    return generator.removesuffix("ChatGenerator").lower()


def address(generator: Generator) -> str:
    """Return the server's address; empty if the generator has none."""
    for name in ("url", "api_base_url"):
        if isinstance(url := getattr(generator, name, None), str):
            return url
    return ""


def prepared(
    generator: Generator,
    *,
    schema: Mapping[str, object] | None,
    temperature: float,
    streamed: bool,
    schema_arguments: Mapping[str, object] | None = None,
) -> tuple[Generator, dict[str, object]]:
    """Return the generator to call and its `generation_kwargs` for one call.

    A schema goes where `schema_arguments` say; else into the generator's `response_format`, if it has one; else into
    `generation_kwargs` as OpenAI defines it, which vLLM, OpenRouter, Mistral and most other servers accept as well.
    What an author has set in `generation_kwargs` takes precedence: some models accept one temperature only.

    :param schema_arguments: `generation_kwargs` that pass a schema to this generator, with `{schema}` in its place;
        empty where it takes none.
    """
    arguments: dict[str, object] = {"temperature": temperature}
    called = generator
    if streamed and _is_openai(generator):
        # Streamed replies need it for token counts; servers reject it for other replies.
        arguments["stream_options"] = {"include_usage": True}
    if schema is not None:
        if schema_arguments is not None:
            arguments |= {name: _filled(value, schema) for name, value in schema_arguments.items()}
        elif hasattr(generator, "response_format"):
            # The copy uses the same client; other threads call the original meanwhile.
            called = copy(generator)
            setattr(called, "response_format", dict(schema))  # noqa: B010 - `Generator` does not declare it
        else:
            described = {"name": "reply", "strict": True, "schema": dict(schema)}
            arguments["response_format"] = {"type": "json_schema", "json_schema": described}
    configured = getattr(generator, "generation_kwargs", None) or {}
    return called, {name: value for name, value in arguments.items() if name not in configured}


def _filled(value: object, schema: Mapping[str, object]) -> object:
    if value == SCHEMA:
        return dict(schema)
    if isinstance(value, Mapping):
        return {name: _filled(part, schema) for name, part in value.items()}
    return value


def _is_openai(generator: Generator) -> bool:
    # By name: importing OpenAI's client takes half a second, which a profile without it should not pay.
    return any(kind.__name__ == "OpenAIChatGenerator" for kind in type(generator).__mro__)


def is_cut_off(reply: ChatMessage) -> bool:
    """Return whether a broken connection has cut the reply off."""
    return not reply.meta.get("finish_reason", "stop")


def is_complete(reply: ChatMessage) -> bool:
    """Return whether the reply is complete: not cut off by a broken connection, a token limit or a filter."""
    return not is_cut_off(reply) and reply.meta.get("finish_reason") not in ("length", "content_filter")


def tokens(reply: ChatMessage) -> tuple[int, int]:
    """Prompt and completion tokens, 0 where the provider does not report them."""
    usage = reply.meta.get("usage") or {}
    return int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)

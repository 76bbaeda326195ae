"""Requests to providers and parsing of their replies; `test_chat` asks a server."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import ollama
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret
from haystack_integrations.components.generators.ollama import OllamaChatGenerator

from components.models.call_format import is_complete, prepared
from components.models.chat import ChatModels
from components.models.failures import failure_of

QUESTION = [ChatMessage.from_system("Кратко."), ChatMessage.from_user("?")]
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
LINES = [
    {"message": {"role": "assistant", "content": "", "thinking": "Хм. "}, "done": False},
    {"message": {"role": "assistant", "content": "Верните "}, "done": False},
    {"message": {"role": "assistant", "content": "за 14 дней."}, "done": False},
    {
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 30,
        "eval_count": 7,
    },
]


class Plain:
    """A generator that only takes `generation_kwargs`, as most of Haystack's do."""

    model = "m"

    def run(
        self,
        messages: list[ChatMessage],
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
        generation_kwargs: dict[str, object] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        return {"replies": [ChatMessage.from_assistant(json.dumps(generation_kwargs), meta={"asked": messages})]}


def reading(lines: Sequence[object], requests: list[Any] | None = None, **more: Any) -> OllamaChatGenerator:  # noqa: ANN401
    """A stock generator with a fake server that answers these lines and records the request."""

    def answer(request: httpx.Request) -> httpx.Response:
        if requests is not None:
            requests.append(json.loads(request.content))
        return httpx.Response(200, content=b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    generator = OllamaChatGenerator("m", **more)
    generator._client = ollama.Client("http://test", transport=httpx.MockTransport(answer))
    return generator


def called(schema_arguments: dict[str, object] | None = None, **own: object) -> dict[str, object]:
    generator = Plain()
    if own:
        generator.generation_kwargs = own  # type: ignore[attr-defined]
    _, arguments = prepared(generator, schema=SCHEMA, temperature=0.3, streamed=True, schema_arguments=schema_arguments)
    return arguments


def test_ollama_is_asked_with_its_options_and_the_schema() -> None:
    requests: list[Any] = []
    options = {"num_ctx": 8192, "temperature": 1}
    generator = reading(LINES[-1:], requests, generation_kwargs=options, keep_alive="30m")
    called, arguments = prepared(generator, schema=SCHEMA, temperature=0.3, streamed=False)
    called.run(QUESTION, generation_kwargs=arguments)
    generator.run(QUESTION)
    assert requests[0]["format"] == SCHEMA
    assert requests[0]["options"] == {"num_ctx": 8192, "temperature": 1}
    assert requests[0]["think"] is False
    assert requests[0]["keep_alive"] == "30m"
    assert requests[0]["messages"][0] == {"role": "system", "content": "Кратко."}
    assert "format" not in requests[1], "the schema of one call is in no other"


def test_a_schema_reaches_any_other_generator_as_openai_defines_it() -> None:
    described = {"name": "reply", "strict": True, "schema": SCHEMA}
    assert called() == {"temperature": 0.3, "response_format": {"type": "json_schema", "json_schema": described}}
    assert called(response_format="own", temperature=1) == {}


def test_an_author_names_another_way_to_pass_a_schema_or_none() -> None:
    form: dict[str, object] = {"response_format": {"type": "json_object", "schema": "{schema}"}}
    assert called(form) == {"temperature": 0.3, "response_format": {"type": "json_object", "schema": SCHEMA}}
    assert called({}) == {"temperature": 0.3}


def test_an_author_names_it_for_one_of_the_models() -> None:
    fast, fallback = Plain(), Plain()
    models = ChatModels(fast, fallback=fallback, schema_arguments={"fallback": {}})
    assert models.schema_arguments_of(fast) is None
    assert models.schema_arguments_of(fallback) == {}
    with pytest.raises(ValueError, match="fallbcak"):
        ChatModels(fast, schema_arguments={"fallbcak": {}})


def test_only_streams_of_openai_are_asked_for_their_usage() -> None:
    openai = OpenAIChatGenerator(api_key=Secret.from_token("k"))
    for streamed in (True, False):
        _, arguments = prepared(openai, schema=None, temperature=0.0, streamed=streamed)
        assert ("stream_options" in arguments) == streamed
    assert "stream_options" not in called()


@pytest.mark.parametrize("reason", ["length", None])
def test_a_reply_that_was_cut_off_is_not_whole(reason: str | None) -> None:
    (reply,) = reading([*LINES[:3], LINES[3] | {"done_reason": reason}]).run(
        QUESTION, streaming_callback=lambda _: None
    )["replies"]
    assert not is_complete(reply)


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([*LINES[:2], {"error": "out of memory"}], "server_error"),
        (LINES[:2], "malformed"),
        ([{"message": 1}], "malformed"),
        ([[]], "malformed"),
        ([1], "malformed"),
        ([{}], "malformed"),
    ],
)
def test_a_stream_that_is_not_ollama_s_has_its_outcome(lines: Sequence[object], outcome: str) -> None:
    with pytest.raises((ollama.ResponseError, ValueError, TypeError, AttributeError)) as raised:
        reading(lines).run(QUESTION, streaming_callback=lambda _: None)
    assert failure_of(raised.value).outcome == outcome

"""Giving a call up: the stock clients close their connections, and nothing more is passed on."""

import gc
import json
from collections.abc import Callable, Iterator
from threading import Event

import httpx
import httpx2
import ollama
import openai
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from haystack_integrations.components.generators.ollama import OllamaChatGenerator

from components.models.breaker import Upstream
from components.models.calls import Calls
from components.models.chat_call import ChatCall, Model, OnText, Request
from components.models.failures import Interrupted, ModelFailed
from components.models.providers import Generator

ENDLESS = 10_000_000


class Tokens(httpx.SyncByteStream, httpx2.SyncByteStream):
    """A reply without end; `closed` is set when the client has closed it."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.sent = 0
        self.closed = Event()

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(ENDLESS):
            self.sent += 1
            yield self.line

    def close(self) -> None:
        self.closed.set()


def ollama_tokens(**message: str) -> Tokens:
    return Tokens(json.dumps({"message": {"role": "assistant", **message}, "done": False}).encode() + b"\n")


def openai_tokens(**delta: str) -> Tokens:
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return Tokens(f"data: {json.dumps(chunk | {'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode())


def speaks_ollama(tokens: Tokens) -> Generator:
    generator = OllamaChatGenerator("m", think=True)
    generator._client = ollama.Client(
        "http://test", transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=tokens))
    )
    return generator


def speaks_openai(tokens: Tokens) -> Generator:
    generator = OpenAIChatGenerator(api_key=Secret.from_token("k"))
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=tokens))
    generator.client = openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=transport))
    return generator


def called(
    generator: Generator, stop: Event, on_text: OnText, provider: Upstream | None = None, timeout: float = 30
) -> str:
    request = Request([ChatMessage.from_user("?")], "answer", "answer.ru@0", "fast", 0.3, None, on_text)
    model = Model(generator, provider or Upstream(failures=1, pause=60, concurrent=1), timeout)
    return ChatCall(model, request, Calls(stop=stop)).run()


@pytest.mark.parametrize(
    ("tokens", "make", "lingers"),
    [(ollama_tokens(content="так "), speaks_ollama, False), (openai_tokens(content="так "), speaks_openai, True)],
    ids=["ollama", "openai"],
)
def test_a_cancelled_call_ends_at_the_next_chunk(
    tokens: Tokens, make: Callable[[Tokens], Generator], lingers: bool
) -> None:
    stop, pieces, seat = Event(), list[str](), Upstream(failures=1, pause=60, concurrent=1)

    def on_text(piece: str) -> None:
        pieces.append(piece)
        stop.set()

    with pytest.raises(Interrupted, match="stopped"):
        called(make(tokens), stop, on_text, seat)
    assert seat.acquire(20)
    if lingers:
        # OpenAI's stream refers to itself, and Haystack 3.4 does not close it when a callback raises.
        gc.collect()
    assert tokens.closed.wait(20)
    assert pieces == ["так "]
    assert tokens.sent < ENDLESS


def test_a_model_that_streams_only_reasoning_is_cancelled_too() -> None:
    tokens, pieces = ollama_tokens(content="", thinking="Хм. "), list[str]()
    with pytest.raises(ModelFailed, match="timeout") as raised:
        called(speaks_ollama(tokens), Event(), pieces.append, timeout=0.3)
    assert tokens.closed.wait(20)
    assert not isinstance(raised.value, Interrupted)
    assert pieces == []

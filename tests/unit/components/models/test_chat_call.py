"""Cancelling a call: the stock clients close their connections, and no more tokens are passed on."""

import gc
import json
from collections.abc import Callable, Iterator
from threading import Event
from time import monotonic

import httpx
import httpx2
import ollama
import openai
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret
from haystack_integrations.components.generators.ollama import OllamaChatGenerator

from components.models import breaker
from components.models.call_format import Generator
from components.models.calls import collect_calls
from components.models.chat import ChatModels
from components.models.chat_call import OnText
from components.models.failures import Interrupted, ModelFailed

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


@pytest.fixture(autouse=True)
def _no_faults_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "_UPSTREAMS", {})


def asked(models: ChatModels, on_text: OnText | None = None, stop: Event | None = None) -> str:
    question = [ChatMessage.from_user("?")]
    with collect_calls(stop=stop):
        return models.ask(question, step="answer", prompt="answer.ru@0", temperature=0, on_text=on_text)


def test_a_call_after_the_turn_is_late() -> None:
    models = ChatModels(fast=speaks_ollama(ollama_tokens(content="так ")))
    with collect_calls(deadline=0), pytest.raises(ModelFailed) as raised:
        asked(models)
    assert raised.value.is_late


@pytest.mark.parametrize(
    ("tokens", "make", "lingers"),
    [(ollama_tokens(content="так "), speaks_ollama, False), (openai_tokens(content="так "), speaks_openai, True)],
    ids=["ollama", "openai"],
)
def test_a_cancelled_call_ends_at_the_next_chunk(
    tokens: Tokens, make: Callable[[Tokens], Generator], lingers: bool
) -> None:
    stop, pieces, models = Event(), list[str](), ChatModels(make(tokens), concurrent=1)

    def on_text(piece: str) -> None:
        pieces.append(piece)
        stop.set()

    with pytest.raises(Interrupted, match="stopped"):
        asked(models, on_text, stop)
    assert models.upstream(models.fast).seats.acquire(("", ""), lambda: 20)
    if lingers:
        # OpenAI's stream refers to itself, and Haystack 3.4 does not close it when a callback raises.
        gc.collect()
    assert tokens.closed.wait(20)
    assert pieces == ["так "]
    assert tokens.sent < ENDLESS


def test_a_model_that_streams_only_reasoning_is_cancelled_too() -> None:
    tokens, pieces = ollama_tokens(content="", thinking="Хм. "), list[str]()
    with pytest.raises(ModelFailed, match="timeout") as raised:
        asked(ChatModels(speaks_ollama(tokens), timeout=0.3), pieces.append)
    assert tokens.closed.wait(20)
    assert not isinstance(raised.value, Interrupted)
    assert pieces == []


class Loading:
    """A generator that loads its model on the first call, so its first token takes `seconds`."""

    model = "m"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(
        self,
        messages: list[ChatMessage],
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
        generation_kwargs: dict[str, object] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        if Event().wait(self.seconds):
            raise AssertionError
        if streaming_callback is not None:
            streaming_callback(StreamingChunk("так"))
        return {"replies": [ChatMessage.from_assistant("так", meta={"finish_reason": "stop"})]}


@pytest.mark.parametrize("on_text", [None, lambda _: None], ids=["whole", "streamed"])
def test_a_first_call_that_loads_the_model_may_take_longer(on_text: OnText | None) -> None:
    models = ChatModels(Loading(0.6), timeout=0.2, loading=30, failures=1)
    assert asked(models, on_text) == "так"
    with pytest.raises(ModelFailed, match="timeout"):
        asked(models, on_text)
    assert models.upstream(models.fast).breaker.is_open


def test_a_model_that_is_still_loading_is_not_blamed() -> None:
    models = ChatModels(Loading(60), timeout=0.1, loading=0.3, failures=1)
    started_at = monotonic()
    with pytest.raises(ModelFailed, match="timeout"):
        asked(models)
    assert monotonic() - started_at < 30
    assert not models.upstream(models.fast).breaker.is_open

"""What Ollama's answers are read as, however they are cut into pieces. `test_chat` asks a server."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from haystack import Pipeline
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret
from hypothesis import given
from hypothesis import strategies as st

from components.models.connections import ServerError
from components.models.ollama import OllamaChatGenerator

TOLD = [
    {"message": {"role": "assistant", "content": "", "thinking": "Хм. "}, "done": False},
    {"message": {"role": "assistant", "content": "Верните "}, "done": False},
    {"message": {"role": "assistant", "content": "за 14 дней"}, "done": False},
    {
        "message": {"role": "assistant", "content": "."},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 30,
        "eval_count": 7,
    },
]


class Server:
    """Stands in for the connections: tells prepared bytes and keeps what it was asked."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.asked: dict[str, Any] = {}
        self.headers: Mapping[str, str] = {}
        self.pause = 0.0
        self.told = 0

    def post(self, _path: str, body: bytes, headers: Mapping[str, str], *, pause: float) -> Iterator[bytes]:
        self.asked, self.headers, self.pause = json.loads(body), headers, pause
        for piece in self.pieces:
            self.told += 1
            yield piece


def lines(told: Sequence[object]) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in told)


def asking(server: Server, **more: Any) -> OllamaChatGenerator:  # noqa: ANN401
    generator = OllamaChatGenerator("m", **more)
    generator._connections = server  # type: ignore[assignment]
    return generator


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({0, len(data), *(place % len(data) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]


@given(places=st.lists(st.integers(0, 10_000)), ended=st.booleans())
def test_a_reply_is_the_same_however_it_comes(*, places: list[int], ended: bool) -> None:
    data = lines(TOLD) if ended else lines(TOLD).removesuffix(b"\n")
    heard: list[StreamingChunk] = []
    (reply,) = asking(Server(*cut(data, places))).run([ChatMessage.from_user("?")], streaming_callback=heard.append)[
        "replies"
    ]
    assert reply.text == "".join(chunk.content for chunk in heard) == "Верните за 14 дней."
    assert reply.reasoning is not None
    assert reply.reasoning.reasoning_text == "Хм. "
    assert reply.meta["finish_reason"] == "stop"
    assert reply.meta["usage"] == {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37}


def test_one_that_breaks_off_has_no_end() -> None:
    (reply,) = asking(Server(lines(TOLD[:3]))).run([ChatMessage.from_user("?")])["replies"]
    assert (reply.text, reply.meta["finish_reason"]) == ("Верните за 14 дней", None)


def test_what_is_asked() -> None:
    server = Server(lines(TOLD))
    generator = asking(
        server,
        generation_kwargs={"num_ctx": 8192, "temperature": 1},
        response_format="json",
        api_key=Secret.from_token("k\n"),
    )
    generator.run([ChatMessage.from_system("Кратко."), ChatMessage.from_user("?")], {"temperature": 0.3})
    assert server.asked == {
        "model": "m",
        "messages": [{"role": "system", "content": "Кратко."}, {"role": "user", "content": "?"}],
        "stream": False,
        "think": False,
        "options": {"num_ctx": 8192, "temperature": 0.3},
        "format": "json",
    }
    assert server.headers == {"Content-Type": "application/json", "Authorization": "Bearer k"}
    assert server.pause == 0.0


def test_a_failure_on_the_way() -> None:
    server = Server(lines(TOLD[:2]), lines([{"error": "out of memory"}]))
    heard: list[StreamingChunk] = []
    with pytest.raises(ServerError, match="out of memory"):
        asking(server).run([ChatMessage.from_user("?")], streaming_callback=heard.append)
    assert [chunk.content for chunk in heard] == ["Верните "]


def test_who_listens_can_stop_a_model_that_only_thinks() -> None:
    class Left(Exception):
        pass

    def leave(_: StreamingChunk) -> None:
        raise Left

    server = Server(lines(TOLD[:1]), lines(TOLD[1:]))
    with pytest.raises(Left):
        asking(server, think=True).run([ChatMessage.from_user("?")], streaming_callback=leave)
    assert server.asked["think"] is True
    assert server.pause > 0
    assert server.told == 1


@pytest.mark.parametrize("data", [b"<html>", b'{"message": 1}\n', b"[]\n", b"1\n", b"{}\n"])
def test_what_ollama_would_not_say(data: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        asking(Server(data)).run([ChatMessage.from_user("?")])


def test_it_is_described_in_yaml() -> None:
    pipeline = Pipeline()
    pipeline.add_component("chat", OllamaChatGenerator("m", timeout=5, generation_kwargs={"num_ctx": 8192}))
    written = pipeline.dumps()
    again = Pipeline.loads(written, allowed_modules=["components"])
    assert again.dumps() == written
    assert "OLLAMA_API_KEY" in written

"""Chat with an Ollama server (https://docs.ollama.com/api/chat), read in few steps: text from many visitors at once."""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

from haystack import component
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret

from components.models.connections import Connections, ServerError
from components.nested import Nested

_PAUSE_SECONDS = 0.03
"""Between two readings of a reply: a quick model sends a few tokens in it, and no eye sees the difference."""

_Object: TypeAlias = Mapping[str, Any]
"""One of those that an answer consists of."""


@component
class OllamaChatGenerator(Nested):
    """Asks an Ollama server for text or JSON.

    `ollama-haystack` has a component of this name that also knows tools, pictures, retries and proxies, and may stand
    anywhere instead. A streamed reply of 64 tokens costs it 14 to 30 ms of processor, this one 3 to 7.

    :param model: the name of the model, which the server must have pulled.
    :param url: of the server.
    :param timeout: seconds to wait for a connection, and for each piece of a reply.
    :param generation_kwargs: `options` of the request, such as `num_ctx`.
    :param keep_alive: how long the server keeps the model in memory: `10m`, or seconds.
    :param think: whether, or how hard, a model that can do so thinks before it replies.
    :param response_format: `json` or a JSON schema.
    :param api_key: for servers that want one.
    """

    def __init__(
        self,
        model: str,
        url: str = "http://127.0.0.1:11434",
        timeout: float = 120,
        generation_kwargs: dict[str, object] | None = None,
        keep_alive: float | str | None = None,
        think: bool | Literal["low", "medium", "high"] = False,
        response_format: Literal["json"] | dict[str, object] | None = None,
        api_key: Secret = Secret.from_env_var("OLLAMA_API_KEY", strict=False),  # noqa: B008 - Haystack's way
    ) -> None:
        self.model = model
        self.url = url
        self.timeout = timeout
        self.generation_kwargs = generation_kwargs or {}
        self.keep_alive = keep_alive
        self.think = think
        self.response_format = response_format
        self.api_key = api_key
        self._connections = Connections(url, timeout)

    def close(self) -> None:
        """Let go of the connections. Others are made when somebody asks."""
        self._connections.close()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        generation_kwargs: dict[str, object] | None = None,
        *,
        streaming_callback: Callable[[StreamingChunk], None] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """The model's reply.

        :param generation_kwargs: over those of the component.
        :param streaming_callback: told of the reply piece by piece, some tokens in each.
        :returns: `replies`: one message. Its `finish_reason` is None when the reply broke off.
        :raises ServerError: the server refused, or failed on the way.
        :raises OSError: it cannot be reached, breaks off, or says nothing for too long.
        :raises ValueError: it says something else than Ollama would, as `KeyError` and `TypeError` do.
        """
        asked = {
            "model": self.model,
            "messages": [{"role": message.role.value, "content": message.text or ""} for message in messages],
            "stream": streaming_callback is not None,
            "think": self.think,
            "options": {**self.generation_kwargs, **(generation_kwargs or {})},
            "format": self.response_format,
            "keep_alive": self.keep_alive,
        }
        content, thoughts = list[str](), list[str]()
        last: _Object = {}
        with closing(self._objects({name: value for name, value in asked.items() if value is not None})) as pieces:
            for piece in pieces:
                said = ""
                for last in piece:
                    said += last["message"]["content"]
                    thoughts.append(last["message"].get("thinking") or "")
                content.append(said)
                if streaming_callback is not None:
                    # Thoughts say nothing, but whoever listens may want no more of them.
                    streaming_callback(StreamingChunk(said, index=len(content) - 1))
        whole = ChatMessage.from_assistant(
            "".join(content) or None, reasoning="".join(thoughts) or None, meta=_meta(self.model, last)
        )
        return {"replies": [whole]}

    def _objects(self, asked: Mapping[str, object]) -> Generator[list[_Object], None, None]:
        """The objects of the answer, as many at a time as came together."""
        key = (self.api_key.resolve_value() or "").strip()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        body = json.dumps(asked, ensure_ascii=False).encode()
        pause = _PAUSE_SECONDS if asked["stream"] else 0.0
        begun = b""
        with closing(self._connections.post("/api/chat", body, headers, pause=pause)) as pieces:
            for piece in pieces:
                *lines, begun = (begun + piece).split(b"\n")
                if lines:
                    yield [_read(line) for line in lines if line]
        if begun:
            yield [_read(begun)]


def _read(line: bytes) -> _Object:
    read: _Object = json.loads(line)
    if "error" in read:
        raise ServerError(HTTPStatus.INTERNAL_SERVER_ERROR, str(read["error"]))
    return read


def _meta(model: str, last: _Object) -> dict[str, object]:
    """What the last object tells of the reply, under Haystack's names."""
    prompt, reply = (int(last.get(name) or 0) for name in ("prompt_eval_count", "eval_count"))
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    done = last.get("done_reason", "stop") if last.get("done") else None
    return {"model": model, "finish_reason": done, "usage": usage}

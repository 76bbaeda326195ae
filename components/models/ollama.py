"""Chat with an Ollama server (https://docs.ollama.com/api/chat), read in few steps: text from many visitors at once."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from haystack import component
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.utils import Secret

from components.models.connections import Connections, ServerError
from components.nested import Nested

_REST_SECONDS = 0.03
"""Between two readings of a reply: a quick model sends a few tokens in it, and no eye sees the difference."""

_BROKEN = 500
_Told: TypeAlias = Mapping[str, Any]
"""An object of Ollama's answer."""


@component
class OllamaChatGenerator(Nested):
    """Asks an Ollama server for text or JSON.

    `ollama-haystack` has a component of this name that also knows tools, pictures, retries and proxies, and may stand
    anywhere instead. A streamed reply of 64 tokens costs it 14 to 30 ms of processor, this one 3.

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
        :raises OSError: it cannot be reached, or says nothing for too long.
        :raises ValueError: it says something else than Ollama would.
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
        last: _Told = {}
        for lines in self._told({name: value for name, value in asked.items() if value is not None}):
            said = ""
            for last in lines:
                message = last["message"]
                said += message["content"]
                thoughts.append(message.get("thinking") or "")
            content.append(said)
            if streaming_callback is not None and said:
                streaming_callback(StreamingChunk(said, index=len(content) - 1))
        whole = ChatMessage.from_assistant(
            "".join(content) or None, reasoning="".join(thoughts) or None, meta=_meta(self.model, last)
        )
        return {"replies": [whole]}

    def _told(self, asked: Mapping[str, object]) -> Iterator[list[_Told]]:
        """The objects of the answer, as many at a time as came together."""
        key = self.api_key.resolve_value()
        rest = b""
        for piece in self._connections.post(
            "/api/chat",
            json.dumps(asked, ensure_ascii=False).encode(),
            f"Authorization: Bearer {key}\r\n" if key else "",
            rest=_REST_SECONDS if asked["stream"] else 0.0,
        ):
            *lines, rest = (rest + piece).split(b"\n")
            if lines:
                yield [_read(line) for line in lines if line]
        if rest:
            yield [_read(rest)]


def _read(line: bytes) -> _Told:
    told: _Told = json.loads(line)
    if "error" in told:
        raise ServerError(_BROKEN, str(told["error"]))
    return told


def _meta(model: str, last: _Told) -> dict[str, object]:
    """What the last object tells of the reply, under Haystack's names."""
    prompt, reply = (int(last.get(name) or 0) for name in ("prompt_eval_count", "eval_count"))
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    done = last.get("done_reason", "stop") if last.get("done") else None
    return {"model": model, "finish_reason": done, "usage": usage}

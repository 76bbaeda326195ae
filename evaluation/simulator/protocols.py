"""The two protocols: parsing of requests, and formatting of replies, whole or token by token."""

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import uuid4

from evaluation.simulator.schemas import Json, Schema

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat request in either protocol. `longest` is the most tokens that the reply may have; 0: any number."""

    model: str
    messages: tuple[Mapping[str, object], ...]
    schema: Schema | None
    stream: bool
    longest: int = 0


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete reply. `seconds` is the duration of the call; `reason` is `stop` or `length`."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    reason: str = "stop"


class OllamaFormat:
    """Ollama's `/api/chat`: a JSON object a line."""

    content_type = "application/x-ndjson"

    def __init__(self, request: ChatRequest) -> None:
        self._model = request.model
        self._created = datetime.now(UTC).isoformat().replace("+00:00", "Z")

    def piece(self, token: str) -> bytes:
        return _line({**self._base(token), "done": False})

    def last(self, reply: ChatReply) -> bytes:
        return _line(self._ended(reply, ""))

    def complete(self, reply: ChatReply) -> Json:
        return self._ended(reply, reply.text)

    def _base(self, text: str) -> dict[str, Json]:
        return {"model": self._model, "created_at": self._created, "message": {"role": "assistant", "content": text}}

    def _ended(self, reply: ChatReply, text: str) -> dict[str, Json]:
        spent = round(reply.seconds * _SECOND)
        return {
            **self._base(text),
            "done": True,
            "done_reason": reply.reason,
            "total_duration": spent,
            "load_duration": 0,
            "prompt_eval_count": reply.prompt_tokens,
            "prompt_eval_duration": spent // 4,
            "eval_count": reply.completion_tokens,
            "eval_duration": spent - spent // 4,
        }


class OpenAIFormat:
    """OpenAI's `/v1/chat/completions`: server-sent events, closed by `[DONE]`."""

    content_type = "text/event-stream"

    def __init__(self, request: ChatRequest, *, usage: bool) -> None:
        self._model = request.model
        self._id = f"chatcmpl-{uuid4().hex}"
        self._created = int(datetime.now(UTC).timestamp())
        self._usage = usage

    def piece(self, token: str) -> bytes:
        return _event(self._chunk([{"index": 0, "delta": {"role": "assistant", "content": token}}]))

    def last(self, reply: ChatReply) -> bytes:
        """Format the end of the choice, the usage if requested, and the closing mark."""
        ended = self._chunk([{"index": 0, "delta": {}, "finish_reason": reply.reason}])
        counted = _event(self._chunk([]) | {"usage": _usage(reply)}) if self._usage else b""
        return _event(ended) + counted + b"data: [DONE]\n\n"

    def complete(self, reply: ChatReply) -> Json:
        message: Json = {"role": "assistant", "content": reply.text}
        return {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.reason, "logprobs": None}],
            "usage": _usage(reply),
        }

    def _chunk(self, choices: list[Json]) -> dict[str, Json]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }


ReplyFormat: TypeAlias = OllamaFormat | OpenAIFormat


def ollama_chat(body: Mapping[str, Any]) -> ChatRequest:
    form = body.get("format")
    return ChatRequest(
        model=body.get("model", ""),
        messages=tuple(body.get("messages", ())),
        schema={"type": "object"} if form == "json" else form or None,
        stream=body.get("stream", True),
        longest=max(0, (body.get("options") or {}).get("num_predict") or 0),
    )


def openai_chat(body: Mapping[str, Any]) -> ChatRequest:
    form = body.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema")
    return ChatRequest(
        model=body.get("model", ""),
        messages=tuple(body.get("messages", ())),
        schema=schema or ({"type": "object"} if form.get("type") == "json_object" else None),
        stream=body.get("stream") or False,
        longest=body.get("max_tokens") or body.get("max_completion_tokens") or 0,
    )


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Whether a stream in OpenAI's protocol is to end with its token counts."""
    return bool((body.get("stream_options") or {}).get("include_usage"))


def texts(value: object) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(item) for item in value]
    return [str(value or "")]


Vectors: TypeAlias = Sequence[Sequence[float]]
VectorFormat: TypeAlias = Callable[[Mapping[str, object], Vectors, int, float], Mapping[str, object]]
"""Format of embeddings, of the request, the vectors, the tokens and the seconds."""


def ollama_vectors(body: Mapping[str, object], vectors: Vectors, tokens: int, seconds: float) -> Mapping[str, object]:
    spent = {"total_duration": round(seconds * _SECOND), "load_duration": 0, "prompt_eval_count": tokens}
    return {"model": body.get("model", ""), "embeddings": vectors, **spent}


def openai_vectors(body: Mapping[str, object], vectors: Vectors, tokens: int, _: float) -> Mapping[str, object]:
    shape = packed if body.get("encoding_format") == "base64" else list
    data = [{"object": "embedding", "index": at, "embedding": shape(vector)} for at, vector in enumerate(vectors)]
    used = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model", ""), "data": data, "usage": used}


def packed(vector: Sequence[float]) -> str:
    """Encode a vector as OpenAI's clients request it: 32-bit floats in base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _usage(reply: ChatReply) -> dict[str, Json]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }


def _line(content: Json) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _event(content: Json) -> bytes:
    return b"data: " + json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"

"""The two protocols: how a request is read, and how a reply is written, whole or token by token."""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from evaluation.simulator.schemas import Json, Schema

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A chat request in either protocol. `longest` is the most tokens that the reply may have; 0: any number."""

    model: str
    messages: tuple[Mapping[str, object], ...]
    schema: Schema | None
    stream: bool
    longest: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """What the whole reply came to. `seconds` are those of the call; `reason` is `stop` or `length`."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    reason: str = "stop"


class Speech(Protocol):
    """One reply in the making."""

    content_type: str

    def piece(self, token: str) -> bytes:
        """One token."""

    def last(self, said: Said) -> bytes:
        """What ends a stream."""

    def whole(self, said: Said) -> Json:
        """The reply in one."""


class OllamaSpeech:
    """Ollama's `/api/chat`: a JSON object a line."""

    content_type = "application/x-ndjson"

    def __init__(self, asked: Asked) -> None:
        self._model = asked.model
        self._created = _now()

    def piece(self, token: str) -> bytes:
        """One token."""
        return _line({**self._base(token), "done": False})

    def last(self, said: Said) -> bytes:
        """The line with the counts."""
        return _line(self._ended(said, ""))

    def whole(self, said: Said) -> Json:
        """The reply in one."""
        return self._ended(said, said.text)

    def _base(self, text: str) -> dict[str, Json]:
        return {"model": self._model, "created_at": self._created, "message": {"role": "assistant", "content": text}}

    def _ended(self, said: Said, text: str) -> dict[str, Json]:
        spent = round(said.seconds * _SECOND)
        return {
            **self._base(text),
            "done": True,
            "done_reason": said.reason,
            "total_duration": spent,
            "load_duration": 0,
            "prompt_eval_count": said.prompt_tokens,
            "prompt_eval_duration": spent // 4,
            "eval_count": said.completion_tokens,
            "eval_duration": spent - spent // 4,
        }


class OpenAISpeech:
    """OpenAI's `/v1/chat/completions`: server-sent events, closed by `[DONE]`."""

    content_type = "text/event-stream"

    def __init__(self, asked: Asked, *, usage: bool) -> None:
        self._model = asked.model
        self._id = f"chatcmpl-{uuid4().hex}"
        self._created = int(datetime.now(UTC).timestamp())
        self._usage = usage

    def piece(self, token: str) -> bytes:
        """One token."""
        return _event(self._chunk([{"index": 0, "delta": {"role": "assistant", "content": token}}]))

    def last(self, said: Said) -> bytes:
        """The end of the choice, the usage when it was asked for, and the closing mark."""
        ended = self._chunk([{"index": 0, "delta": {}, "finish_reason": said.reason}])
        counted = _event(self._chunk([]) | {"usage": _usage(said)}) if self._usage else b""
        return _event(ended) + counted + b"data: [DONE]\n\n"

    def whole(self, said: Said) -> Json:
        """The reply in one."""
        message: Json = {"role": "assistant", "content": said.text}
        return {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "finish_reason": said.reason, "logprobs": None}],
            "usage": _usage(said),
        }

    def _chunk(self, choices: list[Json]) -> dict[str, Json]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }


def ollama_chat(body: Mapping[str, object]) -> Asked:
    """Read the body of `/api/chat`."""
    form = body.get("format")
    options = _mapping(body.get("options"))
    return Asked(
        model=str(body.get("model", "")),
        messages=_mappings(body.get("messages")),
        schema=form if isinstance(form, Mapping) else {"type": "object"} if form == "json" else None,
        stream=body.get("stream", True) is not False,
        longest=max(0, _whole(options.get("num_predict"))),
    )


def openai_chat(body: Mapping[str, object]) -> Asked:
    """Read the body of `/v1/chat/completions`."""
    form = _mapping(body.get("response_format"))
    schema = _mapping(_mapping(form.get("json_schema")).get("schema"))
    return Asked(
        model=str(body.get("model", "")),
        messages=_mappings(body.get("messages")),
        schema=schema or ({"type": "object"} if form.get("type") == "json_object" else None),
        stream=body.get("stream") is True,
        longest=max(0, _whole(body.get("max_tokens")), _whole(body.get("max_completion_tokens"))),
    )


def wants_usage(body: Mapping[str, object]) -> bool:
    """Whether a stream in OpenAI's protocol is to end with its token counts."""
    return _mapping(body.get("stream_options")).get("include_usage") is True


def texts(given: object) -> list[str]:
    """The `input` of an embedding request: a text or several."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [str(one) for one in given]
    return [str(given or "")]


def packed(vector: Sequence[float]) -> str:
    """A vector as OpenAI's clients ask for it: 32-bit floats in base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _usage(said: Said) -> dict[str, Json]:
    return {
        "prompt_tokens": said.prompt_tokens,
        "completion_tokens": said.completion_tokens,
        "total_tokens": said.prompt_tokens + said.completion_tokens,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _line(content: Json) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _event(content: Json) -> bytes:
    return b"data: " + json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> tuple[Mapping[str, object], ...]:
    return tuple(one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else ()


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0

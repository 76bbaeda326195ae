"""OpenAI's chat completions over the same use case, so that any client of that protocol can ask.

The text holds what a visitor would see: the notice, the answer with its [N], and below it what each [N] is. Nothing of
it is sent before it is verified. The whole `turn.v1` object comes along under `opora`.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from time import time
from typing import Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from components.turn import Exchange
from pipelines import problems
from pipelines.ask.contract import SHOWN, AskRequest, TurnAnswer
from pipelines.ask.events import EventName, Narrator
from pipelines.ask.runner import Runner
from pipelines.ask.stream_routes import HEADERS, WatchedStream
from pipelines.ask.streams import Stream
from pipelines.gate import Answer, Route, straight
from settings import Settings
from tenants.errors import Invalid

MODEL = "ask"
_MOST_MESSAGES = 200


class TextPart(BaseModel):
    """One part of a message. Parts of other types, such as pictures, cannot be asked about."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[TextPart, ...] | None = None

    @property
    def text(self) -> str:
        """The words of the message."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(part.text for part in self.content)


class ChatRequest(BaseModel):
    """A request as OpenAI's clients send it. What concerns models alone, such as temperature, has no effect here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    messages: tuple[Message, ...] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream: bool = False


def doors(settings: Settings) -> tuple[Route, ...]:
    """What the gate lets through."""
    limit = settings.max_body_bytes
    return (
        Route("GET", "/v1/models", scope="ask"),
        Route("POST", "/v1/chat/completions", scope="ask", body=ChatRequest, limit=limit),
    )


class ChatCompletions:
    """The endpoints. They stand in for Hayhooks' own, which would offer every pipeline as a model."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def answers(self) -> Mapping[str, Answer]:
        """What the gate calls, by path."""
        return {"/v1/models": self.models, "/v1/chat/completions": straight(ChatRequest, self.complete)}

    async def models(self, body: bytes, headers: Headers) -> Response:  # noqa: ARG002
        """The one model there is."""
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "opora"}
        return JSONResponse({"object": "list", "data": [model]})

    async def complete(self, request: ChatRequest, headers: Headers) -> Response:
        """Answer the last message of the user; the earlier ones are the conversation."""
        question, history = asked(request)
        key = headers.get("idempotency-key")
        if request.stream:
            told = _chunks(self.runner.stream(question, key, history))
            return WatchedStream(told, media_type="text/event-stream", headers=HEADERS)
        turn_id = str(uuid4())
        answer = TurnAnswer.model_validate_json(await self.runner.answer(question, turn_id, key, history))
        text = "".join(part for name, data in Narrator().end(answer) for part in said(name, data))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        # Extractive answers cost no tokens, and clients want the numbers.
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        kept = {"choices": [choice], "usage": usage, "opora": answer.model_dump(mode="json")}
        return JSONResponse(_envelope(turn_id, "chat.completion") | kept)


def asked(request: ChatRequest) -> tuple[AskRequest, tuple[Exchange, ...]]:
    """The question and the conversation before it. Raises `Invalid` when there is no question."""
    words = [message.text for message in request.messages if message.role == "user" and message.text.strip()]
    if not words:
        raise Invalid("question_missing")
    try:
        question = AskRequest(question=words[-1])
    except ValidationError as error:
        raise problems.from_validation(error) from None
    return question, tuple(Exchange(one, "answered") for one in words[:-1])


def said(name: EventName, data: Mapping[str, object], *, footnotes: bool = True) -> Iterator[str]:
    """What a reader sees of an event: `footnotes` say below the text what the marks [N] stand for."""
    if name == "notice":
        yield f"{data['text']}\n\n"
    elif name == "token":
        yield str(data["text"])
    elif name == "revise":
        # What has been sent stays on the screen of such a client.
        yield f"\n\n{data['notice']}\n\n{data['text']}"
    elif name == "retract" and data["what"] == "answer":
        yield f"\n\n{data['notice']}\n\n"
    elif name == "result":
        if data["outcome"] not in SHOWN:
            yield from _text(data)
            yield from _articles(data)
        if footnotes:
            yield from _notes(data)


def _text(result: Mapping[str, object]) -> Iterator[str]:
    """The text of an answer that had no tokens."""
    answer = result["answer"]
    if isinstance(answer, Mapping):
        yield str(answer["text"])


def _articles(result: Mapping[str, object]) -> Iterator[str]:
    """What to read where there is no answer."""
    articles = result["articles"]
    for one in articles if isinstance(articles, list) else ():
        if isinstance(one, Mapping):
            place = " › ".join(str(part) for part in (one["title"], one["heading"]) if part)
            link = f" — {one['url']}" if one["url"] else ""
            snippet = f"\n  {one['snippet']}" if one["snippet"] else ""
            yield f"\n\n- {place}{link}{snippet}"


def _notes(result: Mapping[str, object]) -> Iterator[str]:
    citations = result["citations"]
    cited = [one for one in citations if isinstance(one, Mapping)] if isinstance(citations, list) else []
    lines = [f"[{one['index']}] {one['title']}{' — ' + str(one['url']) if one['url'] else ''}" for one in cited]
    if lines:
        yield "\n\n" + "\n".join(lines)


def _envelope(turn_id: str, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{turn_id}", "object": kind, "created": int(time()), "model": MODEL}


async def _chunks(stream: Stream) -> AsyncIterator[str]:
    yield _chunk(stream, {"role": "assistant", "content": ""})
    async for event in stream.read():
        if event is None:
            yield ": still there\n\n"
        elif event.name == "error":
            yield f"data: {json.dumps({'error': {'message': event.data['code'], 'code': event.data['code']}})}\n\n"
            return
        else:
            for text in said(event.name, event.data):
                yield _chunk(stream, {"content": text})
            if event.name == "result":
                yield _chunk(stream, {}, finish="stop", opora=event.data)
    yield "data: [DONE]\n\n"


def _chunk(stream: Stream, delta: Mapping[str, str], finish: str | None = None, **more: object) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    whole = _envelope(stream.turn_id, "chat.completion.chunk") | {"choices": [choice]} | more
    return f"data: {json.dumps(whole, ensure_ascii=False)}\n\n"

"""`POST /ask/ui-messages`: the turn as the UI message stream of Vercel's AI SDK (version 1 of its protocol).

Text parts carry the notice and the verified answer, source parts what it stands on, and a `data-turn` part the whole
`turn.v1` object.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.responses import Response

from pipelines.ask.events import Event
from pipelines.ask.openai_chat import ChatRequest, Message, asked, said
from pipelines.ask.runner import Runner
from pipelines.ask.stream_routes import HEADERS, WatchedStream
from pipelines.ask.streams import Stream
from pipelines.gate import Answer, Route, straight
from settings import Settings

_PROTOCOL = {"x-vercel-ai-ui-message-stream": "v1"}
_TEXT = "text-1"
_MOST_MESSAGES = 200


class UiPart(BaseModel):
    """One part of a message; only those of type `text` can be asked about."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str
    text: str = ""


class UiMessage(BaseModel):
    """One message of the chat as the SDK keeps it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "user", "assistant"]
    parts: tuple[UiPart, ...] = ()


class UiRequest(BaseModel):
    """What the SDK's default transport posts."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    messages: tuple[UiMessage, ...] = Field(min_length=1, max_length=_MOST_MESSAGES)


def doors(settings: Settings) -> tuple[Route, ...]:
    """What the gate lets through."""
    return (Route("POST", "/ask/ui-messages", scope="ask", body=UiRequest, limit=settings.max_body_bytes),)


def answers(runner: Runner) -> Mapping[str, Answer]:
    """What the gate calls, by path."""

    async def tell(request: UiRequest, headers: Headers) -> Response:
        """Answer the last message of the user as a UI message stream."""
        messages = (
            Message(role=one.role, content="\n".join(part.text for part in one.parts if part.type == "text"))
            for one in request.messages
        )
        question, history = asked(ChatRequest(messages=tuple(messages)))
        told = runner.stream(question, headers.get("idempotency-key"), history)
        return WatchedStream(_parts(told), media_type="text/event-stream", headers=HEADERS | _PROTOCOL)

    return {"/ask/ui-messages": straight(UiRequest, tell)}


async def _parts(stream: Stream) -> AsyncIterator[str]:
    yield _part("start", messageId=stream.turn_id)
    opened = False
    async for event in stream.read():
        if event is None:
            yield ": still there\n\n"
            continue
        for text in said(event.name, event.data, footnotes=False):
            if not opened:
                yield _part("text-start", id=_TEXT)
                opened = True
            yield _part("text-delta", id=_TEXT, delta=text)
        if event.name == "result":
            if opened:
                yield _part("text-end", id=_TEXT)
            for part in _sources(event):
                yield part
            yield _part("data-turn", data=event.data)
        elif event.name == "error":
            yield _part("error", errorText=str(event.data["code"]))
    yield _part("finish")
    yield "data: [DONE]\n\n"


def _sources(event: Event) -> Iterator[str]:
    citations = event.data["citations"]
    for one in citations if isinstance(citations, list) else ():
        if not isinstance(one, Mapping):
            continue
        index, title, url = str(one["index"]), str(one["title"]), one["url"]
        if url:
            yield _part("source-url", sourceId=index, url=str(url), title=title)
        else:
            yield _part("source-document", sourceId=index, mediaType="text/markdown", title=title)


def _part(kind: str, **fields: object) -> str:
    return f"data: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n"

"""`POST /ask/ui-messages`: the turn as the UI message stream of Vercel's AI SDK (version 1 of its protocol).

Source parts with what the answer cites come first, then text parts with the notice and the verified answer, and a
`data-turn` part with the whole `turn.v1` object. `data-sources` (what was found, while the answer is being written) and
`data-iteration` (the figures of each retrieval pass) are transient: `onData` gets them, no message keeps them.
"""

from collections.abc import AsyncIterable, Iterator, Mapping
from typing import Annotated, Literal

from fastapi import Depends, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.responses import Response

from pipelines.ask.contract import TurnAnswer
from pipelines.ask.openai_chat import ChatRequest, Message, parse, readable
from pipelines.ask.runner import Runner
from pipelines.ask.streams import Stream
from pipelines.routes import OpenRouter
from pipelines.sse import json_event
from settings import Settings
from ui.api.stream import until_shutdown

_PROTOCOL = "x-vercel-ai-ui-message-stream"
_TEXT_ID = "text-1"
_TRANSIENT: Mapping[str, str] = {"sources-early": "data-sources", "rag_iteration": "data-iteration"}
_MAX_MESSAGES = 200


class UiPart(BaseModel, extra="ignore", frozen=True):
    """Part of a message; only parts of type `text` are used."""

    type: str
    text: str = ""


class UiMessage(BaseModel, extra="ignore", frozen=True):
    """Chat message as the SDK stores it."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[UiPart, ...] = ()


class UiRequest(BaseModel, extra="ignore", frozen=True):
    """Request of the SDK's default transport. `contact` is an extra field, from the transport's `body`."""

    messages: tuple[UiMessage, ...] = Field(min_length=1, max_length=_MAX_MESSAGES)
    contact: str | None = None


def router(runner: Runner, settings: Settings) -> OpenRouter:
    endpoints = OpenRouter("ask", limit=settings.max_body_bytes, tags=["ask"])

    async def begun(
        request: UiRequest, response: Response, idempotency_key: Annotated[str | None, Header()] = None
    ) -> Stream:
        messages = (
            Message(role=message.role, content="\n".join(part.text for part in message.parts if part.type == "text"))
            for message in request.messages
        )
        question, history = parse(ChatRequest(messages=tuple(messages), contact=request.contact))
        response.headers[_PROTOCOL] = "v1"
        return await runner.stream(question, idempotency_key, history)

    @endpoints.post("/ask/ui-messages", response_class=EventSourceResponse)
    async def stream_message(stream: Annotated[Stream, Depends(begun)]) -> AsyncIterable[ServerSentEvent]:
        """Answer the user's last message as a UI message stream."""
        yield _part("start", messageId=stream.turn_id)
        async for event in until_shutdown(stream):
            if event.name in _TRANSIENT:
                yield _part(_TRANSIENT[event.name], data=event.data, transient=True)
            elif event.name == "result":
                for part in _message(TurnAnswer.model_validate(event.data)):
                    yield part
                yield _part("data-turn", data=event.data)
            elif event.name == "error":
                yield _part("error", errorText=str(event.data["code"]))
        yield _part("finish")
        yield ServerSentEvent(raw_data="[DONE]")

    return endpoints


def _message(answer: TurnAnswer) -> Iterator[ServerSentEvent]:
    for one in answer.citations:
        index = str(one.index)
        if one.url:
            yield _part("source-url", sourceId=index, url=one.url, title=one.title)
        else:
            yield _part("source-document", sourceId=index, mediaType="text/markdown", title=one.title)
    yield _part("text-start", id=_TEXT_ID)
    yield _part("text-delta", id=_TEXT_ID, delta=readable(answer, footnotes=False))
    yield _part("text-end", id=_TEXT_ID)


def _part(kind: str, **fields: object) -> ServerSentEvent:
    return json_event(None, {"type": kind, **fields})

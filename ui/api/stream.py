"""`POST /ask/stream`: the turn as server-sent events, each with an `id` to resume from after a lost connection.

FastAPI encodes the events and sends a keep-alive comment after 15 seconds of silence.
"""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Annotated, get_args

from fastapi import Depends, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent

from pipelines import shutdown
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.streams import GRACE_SECONDS, Stream
from pipelines.ask.turn_events import Event, TurnEventName
from pipelines.routes import OpenRouter
from pipelines.sse import described, json_event
from settings import Settings


def router(runner: Runner, settings: Settings) -> OpenRouter:
    endpoints = OpenRouter("ask", limit=settings.max_body_bytes, tags=["ask"])

    async def begun(
        request: AskRequest,
        last_event_id: Annotated[str, Header(description="Resume after this event.")] = "",
        idempotency_key: Annotated[str | None, Header()] = None,
    ) -> tuple[Stream, int]:
        """Return the stream, and the number of the last event that its client has received."""
        if last_event_id:
            return await runner.resume(last_event_id, request, idempotency_key)
        return await runner.stream(request, idempotency_key, grace=GRACE_SECONDS), 0

    @endpoints.post(
        "/ask/stream",
        response_class=EventSourceResponse,
        responses=described("The turn as it goes on.", get_args(TurnEventName)),
    )
    async def stream_turn(reading: Annotated[tuple[Stream, int], Depends(begun)]) -> AsyncIterable[ServerSentEvent]:
        """Stream the answer to a question; `Last-Event-ID` resumes a stream."""
        turn_id = reading[0].turn_id
        async for event in until_shutdown(*reading):
            yield json_event(event.name, {"turn_id": turn_id, **event.data}, f"{turn_id}:{event.number}")

    return endpoints


async def until_shutdown(stream: Stream, after: int = 0) -> AsyncIterator[Event]:
    """Yield the events after number `after`. Ends early when the service shuts down between events."""
    async for event in stream.read(after):
        if event is not None:
            yield event
        elif shutdown.requested():
            # The client reconnects by itself, to the new process.
            return

"""`POST /ask/stream`: the turn as server-sent events, each with an `id` to go on from after a lost connection."""

import json
from collections.abc import AsyncIterator, Mapping

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pipelines import leaving
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.streams import Stream
from pipelines.gate import Answer, Route, straight
from settings import Settings

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class WatchedStream(StreamingResponse):
    """Ends as soon as its client leaves. By ASGI 2.4 that shows when there is next something to send, which may be long
    after, while a model writes for nobody.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream as Starlette does by ASGI 2.3: listening meanwhile."""
        await super().__call__({**scope, "asgi": {**scope["asgi"], "spec_version": "2.3"}}, receive, send)


def doors(settings: Settings) -> tuple[Route, ...]:
    """What the gate lets through."""
    return (Route("POST", "/ask/stream", scope="ask", body=AskRequest, limit=settings.max_body_bytes),)


def answers(runner: Runner) -> Mapping[str, Answer]:
    """What the gate calls, by path."""

    async def tell(request: AskRequest, headers: Headers) -> Response:
        """Answer a question as a stream of events; see `pipelines/ask/events.py`. `Last-Event-ID` resumes one."""
        seen = headers.get("last-event-id")
        if seen:
            told, after = runner.streams.resume(seen)
        else:
            told, after = runner.stream(request, headers.get("idempotency-key")), 0
        return WatchedStream(frames(told, after), media_type="text/event-stream", headers=HEADERS)

    return {"/ask/stream": straight(AskRequest, tell)}


async def frames(stream: Stream, after: int = 0) -> AsyncIterator[str]:
    """The events behind `after` as server-sent events, those known already in one piece. Silence: a comment."""
    ready = ""
    async for event in stream.read(after):
        if event is None:
            yield ": still there\n\n"
        else:
            data = json.dumps({"turn_id": stream.turn_id, **event.data}, ensure_ascii=False)
            ready += f"event: {event.name}\nid: {stream.turn_id}:{event.number}\ndata: {data}\n\n"
            if event.number >= stream.newest:
                yield ready
                ready = ""
        if leaving.told() and event is None:
            # The client comes back by itself, to the next process.
            return

"""What happens in a tenant's chats, for the desk's pages: which chat has changed, who types and who looks.

A page that hears of a change loads itself again and takes over what is new in it, so nothing is drawn in two places.
One stream serves all tabs of a browser, so a tab says by a request of its own that somebody looks at its chat.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from pipelines import shutdown
from pipelines.ask.chats.events import EVENT_HEADERS, SILENCE_SECONDS, json_event
from pipelines.ask.chats.presence import Attendances, Signal, announce_soon
from pipelines.gate import Route
from tenants.chats import fanout, store
from tenants.chats.fanout import Announcement
from tenants.core import context
from tenants.desk import sessions

SCOPE = "operate"
_LIVE = "/desk/live"
_LOOKING = "/desk/chat/{chat_id}/looking"
_FORM_BYTES = 2_000
_CHECK_SECONDS = 4.0
"""How long a session that has ended may still follow; every typed letter of the tenant wakes the stream."""

ROUTES = (
    Route("GET", _LIVE, scope=SCOPE, page=True),
    Route("POST", _LOOKING, scope=SCOPE, page=True, limit=_FORM_BYTES),
)

router = APIRouter(include_in_schema=False)


@router.get(_LIVE, response_class=EventSourceResponse)
async def follow(response: Response) -> AsyncIterator[ServerSentEvent]:
    """`changed` chats, and who types and looks where, for as long as the session lasts."""
    response.headers.update(EVENT_HEADERS)
    async for event in events():
        yield event


@router.post(_LOOKING, status_code=204)
async def look(
    chat_id: str,
    tab: Annotated[str, Form(pattern=r"^[0-9a-f]{1,32}$")],
    active: Annotated[bool, Form()] = True,
    arriving: Annotated[bool, Form()] = False,
) -> None:
    """Show the operator to whoever else is at the chat; somebody who arrives calls the roll."""
    await asyncio.to_thread(store.get, chat_id)
    operator, caller = sessions.current().operator, context.current()
    here = Announcement(
        caller.tenant_id, chat_id, "presence", "operator", operator.name, active, caller.subject, f"desk:{tab}"
    )
    announce_soon(replace(here, kind="roll_call") if arriving and active else here)


async def events() -> AsyncIterator[ServerSentEvent]:
    """The events, until the session ends or the service shuts down."""
    signed_in, me = sessions.current(), ("operator", context.current().subject)
    attendances, checked_at = Attendances(me), monotonic()
    with fanout.watching() as watcher:
        yield json_event("ready", {})
        while not shutdown.requested():
            changed, announcements = await watcher.wait(SILENCE_SECONDS)
            # Somebody may have signed this browser out from another one.
            if monotonic() - checked_at >= _CHECK_SECONDS:
                checked_at = monotonic()
                if not await asyncio.to_thread(sessions.is_alive, signed_in):
                    yield json_event("ended", {})
                    return
            for one in announcements:
                if one.kind == "roll_call" and one.subject != me[1]:
                    yield json_event("roll_call", {"chat_id": one.chat_id})
            for chat_id, signal in attendances.take(announcements):
                yield _signal(chat_id, signal)
            if "" in changed:
                yield json_event("ready", {})
            for chat_id in changed - {""}:
                yield json_event("changed", {"chat_id": chat_id})


def _signal(chat_id: str, signal: Signal) -> ServerSentEvent:
    person = {"who": signal.who, "subject": signal.subject, "name": signal.name, "active": signal.active}
    return json_event(signal.kind, {"chat_id": chat_id, **person})

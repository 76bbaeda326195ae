"""Live updates of a tenant's chats for the desk's pages: changed chats, typing and presence.

After a change, a page reloads itself and merges the differences, so each element is rendered in one place only.
One stream serves all tabs of a browser, so a tab reports the operator's presence in its chat by a separate request.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from time import monotonic
from typing import Annotated

from fastapi import Form, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from pipelines import shutdown
from pipelines.ask.chats.presence import Attendances, announce_soon
from pipelines.ask.chats.visitor_events import SILENCE_SECONDS
from pipelines.routes import OpenRouter, opens
from pipelines.sse import EVENT_HEADERS, json_event
from tenants.chats import fanout, store
from tenants.chats.fanout import Announcement
from tenants.core import context
from tenants.desk import operator_sessions

_CHECK_SECONDS = 4.0
"""Time that an ended session may keep its stream; every keystroke of the tenant's chats wakes the stream."""


router = OpenRouter("operate", limit=2_000, page=True, include_in_schema=False)


@router.get("/desk/live", response_class=EventSourceResponse)
async def follow(response: Response) -> AsyncIterator[ServerSentEvent]:
    """Yield `changed` chats, typing and presence events for as long as the session lasts."""
    response.headers.update(EVENT_HEADERS)
    signed_in, me = operator_sessions.current(), ("operator", context.current().subject)
    attendances, checked_at = Attendances(me), monotonic()
    with fanout.watching() as watcher:
        yield json_event("ready", {})
        while not shutdown.requested():
            changed, announcements = await watcher.wait(SILENCE_SECONDS)
            # This browser may have been signed out from another one.
            if monotonic() - checked_at >= _CHECK_SECONDS:
                checked_at = monotonic()
                if not await asyncio.to_thread(operator_sessions.is_alive, signed_in):
                    yield json_event("ended", {})
                    return
            for one in announcements:
                if one.kind == "roll_call" and one.subject != me[1]:
                    yield json_event("roll_call", {"chat_id": one.chat_id})
            for chat_id, signal in attendances.take(announcements):
                yield json_event(signal.kind, {"chat_id": chat_id, **asdict(signal)})
            if "" in changed:
                yield json_event("ready", {})
            for chat_id in changed - {""}:
                yield json_event("changed", {"chat_id": chat_id})


@router.post("/desk/chat/{chat_id}/looking", status_code=204)
@opens(takes_turns=True, notice=True)
async def look(
    chat_id: str,
    tab: Annotated[str, Form(pattern=r"^[0-9a-f]{1,32}$")],
    active: Annotated[bool, Form()] = True,
    arriving: Annotated[bool, Form()] = False,
) -> None:
    """Announce the operator to others in the chat; a new arrival makes everyone announce themselves."""
    await asyncio.to_thread(store.get, chat_id)
    operator, caller = operator_sessions.current().operator, context.current()
    here = Announcement(
        caller.tenant_id, chat_id, "presence", "operator", operator.name, active, caller.subject, f"desk:{tab}"
    )
    announce_soon(replace(here, kind="roll_call") if arriving and active else here)

"""Event streams for operators: of all chats of their tenant, and of the open chat."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from time import monotonic

from fastapi.sse import ServerSentEvent

from pipelines import shutdown
from pipelines.ask.chats.contract import DeskChatPart, desk_chat_part
from pipelines.ask.chats.presence import Attendances, Presence
from pipelines.ask.chats.visitor_events import POLL_SECONDS, SILENCE_SECONDS
from pipelines.sse import json_event
from tenants.chats import fanout, store
from tenants.chats.records import Chat, Message
from tenants.core import context
from tenants.core.errors import NotFound

DESK_EVENT_NAMES = ("ready", "state", "typing", "presence")
DESK_CHAT_EVENT_NAMES = ("snapshot", "message", "state", "typing", "presence")


async def desk_events() -> AsyncIterator[ServerSentEvent]:
    """Yield `ready`, then each chat in which something is new, and who types and looks where."""
    me = "operator", context.current().subject
    attendances = Attendances(me)
    with fanout.watching() as watcher:
        yield json_event("ready", {})
        while not shutdown.requested():
            changed, announcements = await watcher.wait(SILENCE_SECONDS)
            for chat_id, signal in attendances.take(announcements):
                yield json_event(signal.kind, {"chat_id": chat_id, **asdict(signal)})
            if "" in changed:
                # Announcements may have been missed. A client that lists the chats on this event sees all of them.
                yield json_event("ready", {})
            for chat_id in changed - {""}:
                chat = await asyncio.to_thread(_desk_chat, chat_id)
                if chat is not None:
                    yield json_event("state", chat)


class DeskChatEvents:
    """Events of a chat for an operator: stored messages and notes, presence and typing.

    :param after: the number of the last message that the operator has.
    """

    def __init__(self, chat_id: str, after: int, name: str) -> None:
        self._chat_id = chat_id
        self._seq = after
        self._presence = Presence(chat_id, "operator", name)

    async def read(self) -> AsyncIterator[ServerSentEvent]:
        """Yield `snapshot`, then all that happens, until the reader leaves or the service shuts down."""
        with fanout.watching(self._chat_id) as watcher:
            try:
                chat, messages = await asyncio.to_thread(self._load)
                yield json_event("snapshot", {"chat": await _part(chat), "messages": messages}, self._seq)
                self._presence.arrive()
                polled_at = monotonic()
                while not shutdown.requested():
                    changed, announcements = await watcher.wait(SILENCE_SECONDS)
                    for signal in self._presence.take(announcements):
                        yield json_event(signal.kind, signal)
                    if changed or monotonic() - polled_at >= POLL_SECONDS:
                        polled_at = monotonic()
                        before = chat
                        chat, messages = await asyncio.to_thread(self._load)
                        for one in messages:
                            yield json_event("message", one, one.seq)
                        if chat != before:
                            yield json_event("state", await _part(chat))
            finally:
                self._presence.leave()

    def _load(self) -> tuple[Chat, tuple[Message, ...]]:
        # The chat first: what it has become by then is in the messages.
        chat, messages = store.get(self._chat_id), store.messages(self._chat_id, after=self._seq, notes=True)
        if messages:
            self._seq = messages[-1].seq
        return chat, messages


async def _part(chat: Chat) -> DeskChatPart:
    return await asyncio.to_thread(desk_chat_part, chat)


def _desk_chat(chat_id: str) -> DeskChatPart | None:
    try:
        return desk_chat_part(store.get(chat_id))
    except NotFound:
        return None

"""Event stream of a chat for operators."""

from collections.abc import AsyncIterator
from time import monotonic

from fastapi.sse import ServerSentEvent

from pipelines import shutdown
from pipelines.ask.chats import shared_reads
from pipelines.ask.chats.contract import DeskChatPart
from pipelines.ask.chats.presence import Presence
from pipelines.ask.chats.visitor_events import SILENCE_SECONDS
from pipelines.sse import json_event
from tenants.chats import fanout
from tenants.chats.records import Chat, Message

DESK_CHAT_EVENT_NAMES = ("snapshot", "message", "state", "typing", "presence")


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
                chat, part, messages = await self._load()
                yield json_event("snapshot", {"chat": part, "messages": messages}, self._seq)
                self._presence.arrive()
                polled_at = monotonic()
                while not shutdown.requested():
                    changed, announcements = await watcher.wait(SILENCE_SECONDS)
                    for signal in self._presence.take(announcements):
                        yield json_event(signal.kind, signal)
                    if changed or monotonic() - polled_at >= shared_reads.poll_seconds():
                        polled_at = monotonic()
                        before = chat
                        chat, part, messages = await self._load()
                        for one in messages:
                            yield json_event("message", one, one.seq)
                        if chat != before:
                            yield json_event("state", part)
            finally:
                self._presence.leave()

    async def _load(self) -> tuple[Chat, DeskChatPart, tuple[Message, ...]]:
        chat, part, messages = await shared_reads.of_operator(self._chat_id, self._seq)
        if messages:
            self._seq = messages[-1].seq
        return chat, part, messages

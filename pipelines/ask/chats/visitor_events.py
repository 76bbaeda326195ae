"""Live events of a chat: stored messages, typing, presence and the running turn.

`snapshot` comes first: the chat and the messages that the reader has not seen. A turn's answer is streamed;
its `result` follows once it is stored, then the stored `message`. `retract` takes back an answer that is discarded
because a person has taken the chat over or the customer has stopped it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal, TypeAlias, get_args

from fastapi.sse import ServerSentEvent

from pipelines import shutdown
from pipelines.ask.chats import shared_reads
from pipelines.ask.chats.contract import message_part
from pipelines.ask.chats.customer_chats import Conversations, LiveTurn
from pipelines.ask.chats.presence import Presence, for_customers
from pipelines.ask.turn_events import LAST, Event, TurnEventName
from pipelines.sse import json_event
from tenants.chats import fanout
from tenants.chats.fanout import Announcement
from tenants.chats.records import Chat

VisitorEventName: TypeAlias = Literal["snapshot", "message", "state", "typing", "presence"]
VISITOR_EVENT_NAMES: tuple[str, ...] = (
    *get_args(VisitorEventName),
    *(one for one in get_args(TurnEventName) if one != "done"),
)

SILENCE_SECONDS = 5.0
"""Interval at which an idle reader checks presence and whether the service is shutting down."""

News: TypeAlias = tuple[frozenset[str], tuple[Announcement, ...]]


@dataclass(frozen=True, slots=True)
class _TurnEvent:
    live: LiveTurn
    event: Event


class ChatEvents:
    """A reader of one of the caller's chats.

    :param after: the number of the last message that the reader has.
    """

    def __init__(self, conversations: Conversations, chat_id: str, after: int) -> None:
        self._conversations = conversations
        self._chat_id = chat_id
        self._seq = after
        self._chat: Chat | None = None
        self._live: LiveTurn | None = None
        self._visible = False
        self._polled_at = monotonic()
        self._presence = Presence(chat_id, "customer")

    async def read(self) -> AsyncIterator[ServerSentEvent]:
        inbox: asyncio.Queue[News | _TurnEvent] = asyncio.Queue()
        with fanout.watching(self._chat_id) as watcher, self._conversations.following(self._chat_id) as turns:
            pumps = [
                asyncio.create_task(_forward_news(watcher, inbox)),
                asyncio.create_task(_forward_turns(turns, inbox)),
            ]
            try:
                yield await self._snapshot()
                self._presence.arrive()
                self._conversations.resume(self._chat_id)
                while not shutdown.requested():
                    item = await inbox.get()
                    events = self._on_turn_event(item) if isinstance(item, _TurnEvent) else self._on_news(item)
                    async for event in events:
                        yield event
                    inbox.task_done()
            finally:
                self._presence.leave()
                for pump in pumps:
                    pump.cancel()

    async def _snapshot(self) -> ServerSentEvent:
        self._chat, part, messages = await shared_reads.of_customer(self._chat_id, self._seq)
        if messages:
            self._seq = messages[-1].seq
        return json_event("snapshot", {"chat": part, "messages": tuple(map(message_part, messages))}, self._seq)

    async def _on_news(self, news: News) -> AsyncIterator[ServerSentEvent]:
        changed, announcements = news
        for signal in self._presence.take(announcements):
            yield json_event(signal.kind, for_customers(signal))
            if signal.kind == "presence" and not signal.active:
                # A customer sees at most one person: show a remaining one.
                for other in self._presence.others:
                    yield json_event(other.kind, for_customers(other))
        if changed or monotonic() - self._polled_at >= shared_reads.poll_seconds():
            async for event in self._poll():
                yield event

    async def _poll(self) -> AsyncIterator[ServerSentEvent]:
        """Yield changes since the last check; of a turn that is being streamed, nothing before its end."""
        self._polled_at = monotonic()
        chat, part, messages = await shared_reads.of_customer(self._chat_id, self._seq)
        for one in messages:
            if self._live is not None and self._live.stream is not None and one.turn_id == self._live.stream.turn_id:
                return
            if one.body.get("event") == "stopped":
                for event in self._retract():
                    yield event
            self._seq = one.seq
            yield json_event("message", message_part(one), one.seq)
        if chat.state != "bot":
            for event in self._retract():
                yield event
            self._conversations.drop(self._chat_id)
        if self._chat is None or _differ(self._chat, chat):
            self._chat = chat
            yield json_event("state", part)

    async def _on_turn_event(self, item: _TurnEvent) -> AsyncIterator[ServerSentEvent]:
        live, event = item.live, item.event
        if event.number == 1 and self._chat is not None and self._chat.version <= live.chat.version:
            self._live, self._visible = live, False
        if self._live is live:
            if event.name == "result" and not live.stored:
                for taken_back in self._retract():
                    yield taken_back
            elif event.name != "done":
                self._visible = self._visible or event.name in ("token", "sources-early")
                yield json_event(event.name, {"turn_id": _turn_id(live), **event.data})
        if event.name in LAST:
            self._live = None
            async for stored in self._poll():
                yield stored

    def _retract(self) -> Iterator[ServerSentEvent]:
        if self._live is not None and self._visible:
            for what in ("answer", "sources"):
                yield json_event("retract", {"turn_id": _turn_id(self._live), "what": what})
        self._live, self._visible = None, False


async def _forward_news(watcher: fanout.Watcher, inbox: "asyncio.Queue[News | _TurnEvent]") -> None:
    while True:
        inbox.put_nowait(await watcher.wait(SILENCE_SECONDS))
        await inbox.join()  # one check for all that happens during it


async def _forward_turns(turns: "asyncio.Queue[LiveTurn]", inbox: "asyncio.Queue[News | _TurnEvent]") -> None:
    while True:
        live = await turns.get()
        if live.stream is not None:
            async for event in live.stream.read():
                if event is not None:
                    inbox.put_nowait(_TurnEvent(live, event))


def _turn_id(live: LiveTurn) -> str:
    return live.stream.turn_id if live.stream is not None else ""


def _differ(before: Chat, after: Chat) -> bool:
    """Return whether a chat has changed in what its last message does not say."""
    return replace(before, last_seq=after.last_seq, updated_at=after.updated_at) != after

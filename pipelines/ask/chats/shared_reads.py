"""Reads of chats that event streams share.

Threat: at each change of a chat, each of its streams reads it again, in the threads that serve all tenants.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from pipelines.ask.chats.contract import ChatPart, DeskChatPart, chat_part, desk_chat_part
from pipelines.pools import Pool
from tenants.chats import fanout, store
from tenants.chats.records import Chat, Message
from tenants.core import context

T = TypeVar("T")

POLL_SECONDS = 15.0
"""Interval of checks for changes that were not announced, such as those by the command line."""
_POLL_EACH_SECONDS = 0.1
"""The same for each stream of the tenant: together they check ten times a second at most."""

_READING = Pool("chat-streams", 8, turns=2)
_READS: dict[Hashable, "asyncio.Future[Any]"] = {}  # of values of every kind


async def shared(read: Callable[[], T], *name: Hashable) -> T:
    """Return what `read` returns, once for all that ask for this name of the tenant until a chat of it changes."""
    # The version is read first: a change meanwhile has another one.
    key = context.current().tenant_id, asyncio.get_running_loop(), fanout.version(), *name
    reading = _READS.get(key)
    if reading is None:
        reading = _READS[key] = asyncio.ensure_future(_READING.run({}, read))
        reading.add_done_callback(lambda _: _READS.pop(key))
    result: T = await asyncio.shield(reading)
    return result


def poll_seconds() -> float:
    """Return the seconds between two checks by one stream of the tenant in context."""
    return max(POLL_SECONDS, _POLL_EACH_SECONDS * fanout.crowd())


async def of_customer(chat_id: str, after: int) -> tuple[Chat, ChatPart, tuple[Message, ...]]:
    """Return a chat, and its messages after number `after` without notes."""
    return await shared(partial(_chat, chat_part, chat_id, after), "customer", chat_id, after)


async def of_operator(chat_id: str, after: int) -> tuple[Chat, DeskChatPart, tuple[Message, ...]]:
    """Return a chat, and its messages after number `after`."""
    return await shared(partial(_chat, desk_chat_part, chat_id, after, notes=True), "operator", chat_id, after)


def _chat(
    part_of: Callable[[Chat], T], chat_id: str, after: int, *, notes: bool = False
) -> tuple[Chat, T, tuple[Message, ...]]:
    # The chat first: what it has become by then is in the messages.
    chat = store.get(chat_id)
    return chat, part_of(chat), store.messages(chat_id, after=after, notes=notes)

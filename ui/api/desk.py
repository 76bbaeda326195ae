"""`/desk` over HTTP, for operators: the tenant's chats and every operator action in them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, TypeAlias

from fastapi import Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import AwareDatetime, BaseModel, Field, StringConstraints

from pipelines.ask.chats import presence, suggested_replies
from pipelines.ask.chats.contract import DeskChatPart, MessagePart, desk_chat_part
from pipelines.ask.chats.customer_chats import Conversations
from pipelines.ask.chats.desk_events import DESK_CHAT_EVENT_NAMES, DeskChatEvents
from pipelines.routes import OpenRouter, opens
from pipelines.sse import EVENT_HEADERS, described, last_number
from tenants.chats import store, undo
from tenants.chats.records import MAX_SEQ, Chat, Posted
from tenants.chats.transitions import State
from ui.api.visitor import ClientId, ReadMark, TypingState

REPLY_LIMIT = 10_000
_CHATS = "/desk/chats"
_ONE = "/desk/chats/{chat_id}"

_Text: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=REPLY_LIMIT, pattern=r"^[^\x00]*$")
]
_Name: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100, pattern=r"^[^\x00-\x1f]*$")]
_Subject: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f]*$")]


class Change(BaseModel, extra="forbid"):
    """Change by an operator. `version` is the chat version that they saw; if omitted, the change applies to any
    version.
    """

    version: Annotated[int, Field(ge=0)] | None = None
    name: _Name = ""


class Transfer(Change):
    """Transfer of a chat to another operator, by subject; `name` is the display name for customers."""

    operator: _Subject


class Snooze(Change):
    """Snooze of a chat."""

    until: AwareDatetime


class Reply(BaseModel, extra="forbid"):
    """Public reply. `seen` is the last message that the operator has read, `name` the display name for customers, and
    `suggestion` the id of the message with the suggestion that the reply is based on.
    """

    text: _Text
    seen: Annotated[int, Field(ge=0, le=MAX_SEQ)]
    client_id: ClientId | None = None
    name: _Name = ""
    suggestion: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{1,32}$")] | None = None


class Note(BaseModel, extra="forbid"):
    """Note for other operators."""

    text: _Text
    name: _Name = ""


class OperatorTypingState(TypingState):
    """Whether an operator is typing, with their display name for customers."""

    name: _Name = ""


class DeskThreadAnswer(BaseModel):
    """Chat with its messages, notes included."""

    chat: DeskChatPart
    messages: tuple[MessagePart, ...]


class DeskPostedAnswer(BaseModel):
    """Stored message and the chat after it."""

    chat: DeskChatPart
    message: MessagePart


def router(conversations: Conversations) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=100_000, desk=True, tags=["desk"])
    _add_changes(endpoints)

    @endpoints.get(_CHATS)
    def list_desk_chats(
        state: State | None = None,
        assignee: Annotated[str | None, Query(max_length=255)] = None,
        with_ticket: Annotated[bool, Query(description="Only chats with an open ticket.")] = False,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[DeskChatPart]:
        """List the tenant's chats, most recently used first."""
        chats = store.latest(state=state, assignee=assignee, with_ticket=with_ticket, limit=limit)
        return [desk_chat_part(chat) for chat in chats]

    @endpoints.get(_ONE)
    def show_desk_chat(chat_id: str, after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0) -> DeskThreadAnswer:
        """Return a chat with its messages and notes after number `after`."""
        return thread(store.get(chat_id), after)

    @endpoints.post(f"{_ONE}/reply")
    @opens(takes_turns=True)
    async def reply(chat_id: str, body: Reply) -> DeskPostedAnswer:
        """Send a reply to the customer and take the chat. Returns 409 if another operator has replied since."""

        def store_reply() -> DeskPostedAnswer:
            posted = store.reply(
                chat_id, body.text, seen=body.seen, name=body.name, client_id=body.client_id, suggestion=body.suggestion
            )
            return posted_part(posted)

        answer = await asyncio.to_thread(store_reply)
        conversations.drop(chat_id)
        return answer

    @endpoints.post(f"{_ONE}/take")
    @opens(takes_turns=True)
    async def take(chat_id: str, body: Change) -> DeskChatPart:
        """Take the chat."""
        chat = await asyncio.to_thread(store.take, chat_id, version=body.version, name=body.name)
        conversations.drop(chat_id)
        return await asyncio.to_thread(desk_chat_part, chat)

    @endpoints.post(f"{_ONE}/typing", status_code=204)
    @opens(takes_turns=True, notice=True)
    async def operator_types(chat_id: str, body: OperatorTypingState) -> None:
        """Show the customer that an operator is typing."""
        await asyncio.to_thread(store.get, chat_id)
        presence.typing(chat_id, "operator", body.name, active=body.active)

    @endpoints.post(f"{_ONE}/suggestions")
    @opens(takes_turns=True)
    async def suggest_reply(chat_id: str) -> DeskPostedAnswer:
        """Suggest a reply to the customer's last question: a note with the turn, hidden from customers."""
        posted = await suggested_replies.suggest(conversations.runner, chat_id)
        return await asyncio.to_thread(posted_part, posted)

    @endpoints.post(f"{_ONE}/suggestions/{{message_id}}/discard", status_code=204)
    def discard_suggestion(chat_id: str, message_id: str) -> None:
        """Mark a suggestion as not useful."""
        store.discard_suggestion(chat_id, message_id)

    async def chat_reader(
        chat_id: str,
        response: Response,
        name: Annotated[str, Query(max_length=100, description="How the customer knows the operator.")] = "",
        after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
        last_event_id: Annotated[
            str, Header(description="Number of the last message received, to continue after it.")
        ] = "",
    ) -> DeskChatEvents:
        await asyncio.to_thread(store.get, chat_id)
        response.headers.update(EVENT_HEADERS)
        return DeskChatEvents(chat_id, max(after, last_number(last_event_id)), name)

    @endpoints.get(
        f"{_ONE}/events",
        response_class=EventSourceResponse,
        responses=described("What happens.", DESK_CHAT_EVENT_NAMES),
    )
    @opens(desk=False)
    async def follow_desk_chat(
        events: Annotated[DeskChatEvents, Depends(chat_reader)],
    ) -> AsyncIterator[ServerSentEvent]:
        """Stream one chat's events, notes included. The customer and other operators see the reader's presence."""
        async for event in events.read():
            yield event

    return endpoints


def _add_changes(endpoints: OpenRouter) -> None:
    @endpoints.post(f"{_ONE}/note")
    def note(chat_id: str, body: Note) -> DeskPostedAnswer:
        """Add a note that the customer does not see."""
        return posted_part(store.note(chat_id, body.text, name=body.name))

    @endpoints.post(f"{_ONE}/transfer")
    def transfer(chat_id: str, body: Transfer) -> DeskChatPart:
        """Transfer the chat to another operator."""
        return desk_chat_part(store.transfer(chat_id, body.operator, version=body.version, name=body.name))

    @endpoints.post(f"{_ONE}/hand_back")
    def hand_back(chat_id: str, body: Change) -> DeskChatPart:
        """Return the chat to the assistant."""
        return desk_chat_part(store.hand_back(chat_id, version=body.version))

    @endpoints.post(f"{_ONE}/snooze")
    def snooze(chat_id: str, body: Snooze) -> DeskChatPart:
        """Snooze the chat until a time, or until the customer writes."""
        return desk_chat_part(store.snooze(chat_id, body.until, version=body.version))

    @endpoints.post(f"{_ONE}/resolve")
    def resolve(chat_id: str, body: Change) -> DeskChatPart:
        """Close the chat. The customer's next message goes to the assistant."""
        return desk_chat_part(store.resolve(chat_id, version=body.version))

    @endpoints.post(f"{_ONE}/reopen")
    def reopen(chat_id: str, body: Change) -> DeskChatPart:
        """Reopen a closed chat."""
        return desk_chat_part(store.reopen(chat_id, version=body.version, name=body.name))

    @endpoints.post(f"{_ONE}/undo")
    def take_back(chat_id: str) -> DeskChatPart:
        """Undo the operator's own last change to the chat, within two minutes and only if nothing has changed since."""
        return desk_chat_part(undo.undo(chat_id))

    @endpoints.post(f"{_ONE}/seen", status_code=204)
    def operator_has_seen(chat_id: str, body: ReadMark) -> None:
        """Record how far operators have read."""
        store.mark_seen(chat_id, body.seq, by_operator=True)


def thread(chat: Chat, after: int = 0) -> DeskThreadAnswer:
    messages = store.messages(chat.chat_id, after=after, notes=True)
    return DeskThreadAnswer(chat=desk_chat_part(chat), messages=messages)


def posted_part(posted: Posted) -> DeskPostedAnswer:
    return DeskPostedAnswer(chat=desk_chat_part(posted.chat), message=posted.message)

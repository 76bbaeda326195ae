"""`/desk` over HTTP, for operators: the chats of their tenant, and everything that a person can do in one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from pipelines.ask.chats import presence, suggestions
from pipelines.ask.chats.contract import DeskChatPart, MessagePart, desk_chat_part, desk_message_part
from pipelines.ask.chats.conversations import Conversations
from pipelines.ask.chats.desk_events import DESK_CHAT_EVENT_NAMES, DESK_EVENT_NAMES, DeskChatEvents, desk_events
from pipelines.ask.chats.events import EVENT_HEADERS
from pipelines.ask.runner import Runner
from pipelines.event_ids import is_event_number
from pipelines.gate import Route
from tenants.chats import store, undo
from tenants.chats.records import MAX_SEQ, Chat, Posted
from tenants.chats.transitions import State
from ui.api.visitor import ClientId, ReadMark, TypingState

SCOPE = "operate"
REPLY_LIMIT = 10_000
_CHATS = "/desk/chats"
_ONE = "/desk/chats/{chat_id}"
_BODY_BYTES = 100_000

_Text: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=REPLY_LIMIT, pattern=r"^[^\x00]*$")
]
_Name: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100, pattern=r"^[^\x00-\x1f]*$")]
_Subject: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f]*$")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Change(_Body):
    """A change by an operator. `version` is the chat's as they saw it; without it, whatever it has become."""

    version: Annotated[int, Field(ge=0)] | None = None
    name: _Name = ""


class Transfer(Change):
    """Give a chat to another operator, by their subject; `name` is how customers know them."""

    operator: _Subject


class Snooze(Change):
    """Put a chat off."""

    until: AwareDatetime


class Reply(_Body):
    """A public reply. `seen` is the last message that the operator has read, `name` how customers know them, and
    `suggestion` the message of the suggestion that it was written from.
    """

    text: _Text
    seen: Annotated[int, Field(ge=0, le=MAX_SEQ)]
    client_id: ClientId | None = None
    name: _Name = ""
    suggestion: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{1,32}$")] | None = None


class Note(_Body):
    """A note for other operators."""

    text: _Text
    name: _Name = ""


class OperatorTypingState(TypingState):
    """Whether an operator types, and how customers know them."""

    name: _Name = ""


class DeskThreadAnswer(BaseModel):
    """A chat and its messages, notes included."""

    chat: DeskChatPart
    messages: tuple[MessagePart, ...]


class DeskPostedAnswer(BaseModel):
    """A stored message, and the chat after it."""

    chat: DeskChatPart
    message: MessagePart


ROUTES = (
    Route("GET", _CHATS, scope=SCOPE, desk=True),
    Route("GET", "/desk/events", scope=SCOPE),
    Route("GET", _ONE, scope=SCOPE, desk=True),
    Route("GET", f"{_ONE}/events", scope=SCOPE),
    Route("POST", f"{_ONE}/reply", scope=SCOPE, desk=True, body=Reply, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/note", scope=SCOPE, desk=True, body=Note, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/suggestions", scope=SCOPE, desk=True),
    Route("POST", f"{_ONE}/suggestions/{{message_id}}/discard", scope=SCOPE, desk=True),
    Route("POST", f"{_ONE}/take", scope=SCOPE, desk=True, body=Change, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/transfer", scope=SCOPE, desk=True, body=Transfer, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/hand_back", scope=SCOPE, desk=True, body=Change, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/snooze", scope=SCOPE, desk=True, body=Snooze, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/resolve", scope=SCOPE, desk=True, body=Change, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/reopen", scope=SCOPE, desk=True, body=Change, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/undo", scope=SCOPE, desk=True),
    Route("POST", f"{_ONE}/typing", scope=SCOPE, desk=True, body=OperatorTypingState, limit=_BODY_BYTES),
    Route("POST", f"{_ONE}/seen", scope=SCOPE, desk=True, body=ReadMark, limit=_BODY_BYTES),
)


def _events(names: Sequence[str]) -> dict[int | str, dict[str, object]]:
    item = {"properties": {"event": {"enum": [*names]}}}
    return {200: {"description": "What happens.", "content": {"text/event-stream": {"itemSchema": item}}}}


def router(conversations: Conversations) -> APIRouter:
    """The endpoints."""
    endpoints = APIRouter(tags=["desk"])
    _add_changes(endpoints)
    _add_suggestions(endpoints, conversations.runner)

    @endpoints.get(_CHATS)
    def list_desk_chats(
        state: State | None = None,
        assignee: Annotated[str | None, Query(max_length=255)] = None,
        with_ticket: Annotated[bool, Query(description="Only those that a person still owes an answer.")] = False,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[DeskChatPart]:
        """The tenant's chats, the last used first."""
        chats = store.latest(state=state, assignee=assignee, with_ticket=with_ticket, limit=limit)
        return [desk_chat_part(chat) for chat in chats]

    @endpoints.get(_ONE)
    def show_desk_chat(chat_id: str, after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0) -> DeskThreadAnswer:
        """A chat, its messages and notes behind number `after`."""
        return thread(store.get(chat_id), after)

    @endpoints.post(f"{_ONE}/reply")
    async def reply(chat_id: str, body: Reply) -> DeskPostedAnswer:
        """Write to the customer, and have the chat from here on. 409 when another operator has answered since."""

        def store_reply() -> DeskPostedAnswer:
            posted = store.reply(
                chat_id, body.text, seen=body.seen, name=body.name, client_id=body.client_id, suggestion=body.suggestion
            )
            return posted_part(posted)

        answer = await asyncio.to_thread(store_reply)
        conversations.drop(chat_id)
        return answer

    @endpoints.post(f"{_ONE}/take")
    async def take(chat_id: str, body: Change) -> DeskChatPart:
        """Have the chat from here on."""
        chat = await asyncio.to_thread(store.take, chat_id, version=body.version, name=body.name)
        conversations.drop(chat_id)
        return await asyncio.to_thread(desk_chat_part, chat)

    @endpoints.post(f"{_ONE}/typing", status_code=204)
    async def operator_types(chat_id: str, body: OperatorTypingState) -> None:
        """Let the customer see that a person types."""
        await asyncio.to_thread(store.get, chat_id)
        presence.typing(chat_id, "operator", body.name, active=body.active)

    async def chat_reader(
        chat_id: str,
        response: Response,
        name: Annotated[str, Query(max_length=100, description="How the customer knows the operator.")] = "",
        after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
        last_event_id: Annotated[str, Header(description="The number of the last message, to go on after it.")] = "",
    ) -> DeskChatEvents:
        # A dependency, because an error must be answered before the response begins.
        await asyncio.to_thread(store.get, chat_id)
        response.headers.update(EVENT_HEADERS)
        seen = int(last_event_id) if is_event_number(last_event_id) else 0
        return DeskChatEvents(chat_id, max(after, seen), name)

    @endpoints.get(f"{_ONE}/events", response_class=EventSourceResponse, responses=_events(DESK_CHAT_EVENT_NAMES))
    async def follow_desk_chat(
        events: Annotated[DeskChatEvents, Depends(chat_reader)],
    ) -> AsyncIterator[ServerSentEvent]:
        """One chat as events, notes included. Its customer and other operators see that the reader is there."""
        async for event in events.read():
            yield event

    @endpoints.get("/desk/events", response_class=EventSourceResponse, responses=_events(DESK_EVENT_NAMES))
    async def follow_desk(response: Response) -> AsyncIterator[ServerSentEvent]:
        """All chats of the tenant: `ready`, then a chat's `state` when anything in it is new, `typing`, `presence`."""
        response.headers.update(EVENT_HEADERS)
        async for event in desk_events():
            yield event

    return endpoints


def _add_suggestions(endpoints: APIRouter, runner: Runner) -> None:
    @endpoints.post(f"{_ONE}/suggestions")
    async def suggest_reply(chat_id: str) -> DeskPostedAnswer:
        """Suggest a reply to the customer's last question: a note with the turn, which no customer sees."""
        posted = await suggestions.suggest(runner, chat_id)
        return await asyncio.to_thread(posted_part, posted)

    @endpoints.post(f"{_ONE}/suggestions/{{message_id}}/discard", status_code=204)
    def discard_suggestion(chat_id: str, message_id: str) -> None:
        """Note that a suggestion was of no use."""
        store.discard_suggestion(chat_id, message_id)


def _add_changes(endpoints: APIRouter) -> None:
    @endpoints.post(f"{_ONE}/note")
    def note(chat_id: str, body: Note) -> DeskPostedAnswer:
        """Write a note that the customer does not see."""
        return posted_part(store.note(chat_id, body.text, name=body.name))

    @endpoints.post(f"{_ONE}/transfer")
    def transfer(chat_id: str, body: Transfer) -> DeskChatPart:
        """Give the chat to another operator."""
        return desk_chat_part(store.transfer(chat_id, body.operator, version=body.version, name=body.name))

    @endpoints.post(f"{_ONE}/hand_back")
    def hand_back(chat_id: str, body: Change) -> DeskChatPart:
        """Give the chat back to the assistant."""
        return desk_chat_part(store.hand_back(chat_id, version=body.version))

    @endpoints.post(f"{_ONE}/snooze")
    def snooze(chat_id: str, body: Snooze) -> DeskChatPart:
        """Put the chat off until a time, or until the customer writes."""
        return desk_chat_part(store.snooze(chat_id, body.until, version=body.version))

    @endpoints.post(f"{_ONE}/resolve")
    def resolve(chat_id: str, body: Change) -> DeskChatPart:
        """End the chat. The customer's next message goes to the assistant."""
        return desk_chat_part(store.resolve(chat_id, version=body.version))

    @endpoints.post(f"{_ONE}/reopen")
    def reopen(chat_id: str, body: Change) -> DeskChatPart:
        """Go on with an ended chat."""
        return desk_chat_part(store.reopen(chat_id, version=body.version, name=body.name))

    @endpoints.post(f"{_ONE}/undo")
    def take_back(chat_id: str) -> DeskChatPart:
        """Take back one's own last change of the chat, within two minutes and while nothing else has changed it."""
        return desk_chat_part(undo.undo(chat_id))

    @endpoints.post(f"{_ONE}/seen", status_code=204)
    def operator_has_seen(chat_id: str, body: ReadMark) -> None:
        """Note how far operators have read."""
        store.mark_seen(chat_id, body.seq, by_operator=True)


def thread(chat: Chat, after: int = 0) -> DeskThreadAnswer:
    """A chat as operators read it."""
    messages = store.messages(chat.chat_id, after=after, notes=True)
    return DeskThreadAnswer(chat=desk_chat_part(chat), messages=tuple(map(desk_message_part, messages)))


def posted_part(posted: Posted) -> DeskPostedAnswer:
    """A message that was just stored."""
    return DeskPostedAnswer(chat=desk_chat_part(posted.chat), message=desk_message_part(posted.message))

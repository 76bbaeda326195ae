"""Chats and their messages as callers see them: customers less of them than operators."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from tenants.accounts import policy
from tenants.chats import store
from tenants.chats.records import Author, Chat, Kind, Message, Posted
from tenants.chats.transitions import State

Owner: TypeAlias = Literal["bot", "human", "nobody"]

_FOR_OPERATORS = frozenset({"operator", "meant", "suggestion", "email"})
"""Keys of a message that customers do not see: operators' internal names, the interpreted question, the assistant's
suggestion, and the e-mail that a message came by.
"""


class ChatPart(BaseModel):
    """A chat for its customer. `owner` is the side that answers next, `nobody` while the chat waits or after its end.

    `contact_wanted`: the customer waits for a person and has not said how to reach them after leaving the chat.
    """

    chat_id: str
    state: State
    owner: Owner
    assignee_name: str | None
    version: int
    last_seq: int
    ticket_id: str | None
    contact_wanted: bool
    csat: int | None
    customer_seen: int
    operator_seen: int
    locale: str
    created_at: datetime
    updated_at: datetime


class DeskChatPart(ChatPart):
    """A chat as operators see it.

    `session_id` is null where the customer reads the chat; in any other, only `contact` leads to them.
    """

    subject: str
    session_id: str | None
    contact: str | None
    site: str
    channel: str
    assignee: str | None
    reason: str
    confidence: float | None
    failures: int
    reopened: int
    csat_comment: str
    waiting_since: datetime | None
    snoozed_until: datetime | None
    resolved_at: datetime | None


class MessagePart(BaseModel, from_attributes=True):
    """A message. `body` holds the whole turn of a `bot` (`turn`), a `file`, or what has happened (`event`)."""

    message_id: str
    seq: int
    author: Author
    kind: Kind
    text: str
    name: str
    client_id: str | None
    turn_id: str
    body: dict[str, Any]
    created_at: datetime


class ThreadAnswer(BaseModel):
    """A chat and its messages behind a number."""

    chat: ChatPart
    messages: tuple[MessagePart, ...]


class PostedAnswer(BaseModel):
    """A stored message, and the chat after it."""

    chat: ChatPart
    message: MessagePart


def chat_part(chat: Chat) -> ChatPart:
    """Return a chat for its customer. Reads the assignee's name."""
    return ChatPart.model_validate(_chat_fields(chat))


def desk_chat_part(chat: Chat) -> DeskChatPart:
    return DeskChatPart.model_validate(_chat_fields(chat))


def message_part(message: Message) -> Message:
    return replace(message, body={name: value for name, value in message.body.items() if name not in _FOR_OPERATORS})


def thread_answer(chat: Chat, messages: Iterable[Message]) -> ThreadAnswer:
    return ThreadAnswer(chat=chat_part(chat), messages=tuple(map(message_part, messages)))


def posted_answer(posted: Posted) -> PostedAnswer:
    return PostedAnswer(chat=chat_part(posted.chat), message=message_part(posted.message))


def owner(chat: Chat) -> Owner:
    if chat.state == "bot":
        return "bot"
    return "human" if chat.assignee is not None and chat.state != "resolved" else "nobody"


def _chat_fields(chat: Chat) -> dict[str, Any]:
    return {
        **asdict(chat),
        "owner": owner(chat),
        "contact_wanted": chat.state == "queued" and not chat.contact and policy.current().email_replies,
        "assignee_name": store.assignee_name(chat) or None,
    }

"""Value types of chats and messages, independent of the database rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import TypeAdapter

from tenants.chats.tables import ChatMessageRow, ChatRow
from tenants.chats.transitions import State
from tenants.storage.mapping import record_of

if TYPE_CHECKING:
    from tenants.core.json import Json

    Body: TypeAlias = Mapping[str, Json]
else:
    Body: TypeAlias = Mapping

Author: TypeAlias = Literal["customer", "bot", "operator", "system"]
Kind: TypeAlias = Literal["text", "note", "event", "file"]
EMPTY_BODY: Body = {}
MAX_SEQ = 1_000_000_000
"""Upper limit of message numbers; larger numbers are invalid."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message. A `note` is visible to operators only; an `event` describes a change of the chat in `body`."""

    message_id: str
    seq: int
    author: Author
    kind: Kind
    text: str
    name: str
    client_id: str | None
    turn_id: str
    body: Body
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Line:
    """A message as transcripts show it. `event` and `file` are what has happened and the name of a file, if any."""

    author: Author
    kind: Kind
    text: str
    name: str
    event: str | None
    file: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UndoMark:
    """The operator who may undo the change that led to `version`, and the time of that change."""

    version: int
    by: str
    at: datetime


_UNDO_MARK = TypeAdapter(UndoMark)


@dataclass(frozen=True, slots=True)
class Chat:
    """State of a chat. `version` counts changes of state or assignee, `last_seq` counts messages.

    A chat with a `session_id` was handed over from outside: its customer does not read it, see `contact`.
    """

    chat_id: str
    subject: str
    site: str
    channel: str
    session_id: str | None
    contact: str | None
    locale: str
    state: State
    assignee: str | None
    version: int
    last_seq: int
    ticket_id: str | None
    reason: str
    confidence: float | None
    failures: int
    reopened: int
    csat: int | None
    csat_comment: str
    customer_seen: int
    operator_seen: int
    mail_token: str | None
    mailed_seq: int
    waiting_since: datetime | None
    snoozed_until: datetime | None
    resolved_at: datetime | None
    undo: UndoMark | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Posted:
    """A stored message and the chat after it. `repeated`: it had been stored before, under the same `client_id`."""

    chat: Chat
    message: Message
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class BotReply:
    """Reply of the assistant in a chat, with the whole turn in `body`."""

    text: str
    body: Body


@dataclass(frozen=True, slots=True)
class HandoffRequest:
    """Reason for handing a chat to a person. `draft` is the unverified answer, for operators only."""

    reason: str
    question: str = ""
    turn_id: str = ""
    draft: str = ""
    confidence: float | None = None


def chat_of(row: ChatRow) -> Chat:
    """Convert a row to a chat."""
    return record_of(Chat, row, undo=_UNDO_MARK.validate_python(row.undo) if row.undo else None)


def message_of(row: ChatMessageRow) -> Message:
    """Convert a row to a message."""
    return record_of(Message, row, text=row.text if row.original is None else row.original)

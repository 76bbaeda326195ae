"""Branches: a chat of a customer that continues an earlier conversation from some point of it."""

from collections.abc import Iterable
from secrets import token_hex

from tenants.chats.change import Change, announce, begin, changing
from tenants.chats.records import Chat, Message, chat_of
from tenants.chats.tables import ChatMessageRow
from tenants.storage import database


def start(source: Chat, kept: Iterable[Message]) -> Chat:
    """Start a chat of the caller with copies of these messages of `source`. A line in each chat leads to the other.

    Copies count in no statistics and trigger no webhooks. Files stay in the first chat; their names are copied.
    """
    with database.writing() as session:
        row = begin(session, site=source.site, channel=source.channel, locale=source.locale)
        for row.last_seq, message in enumerate(kept, start=1):
            session.add(_copy(message, row.chat_id, row.last_seq))
        Change(session, row).add("system", "event", "", body={"event": "branched_from", "chat_id": source.chat_id})
        chat = chat_of(row)
    with changing(source.chat_id) as change:
        change.add("system", "event", "", body={"event": "branched_to", "chat_id": chat.chat_id})
    announce(chat.chat_id)
    return chat


def _copy(message: Message, chat_id: str, seq: int) -> ChatMessageRow:
    return ChatMessageRow(
        chat_id=chat_id,
        seq=seq,
        message_id=token_hex(12),
        client_id=None,
        author=message.author,
        operator="",
        name=message.name,
        kind="text",
        text=message.text or _file_name(message),
        original=None,
        turn_id=message.turn_id,
        body={name: value for name, value in message.body.items() if name in ("meant", "turn")},
        created_at=message.created_at,
    )


def _file_name(message: Message) -> str:
    file = message.body.get("file")
    return str(file["name"]) if isinstance(file, dict) else ""

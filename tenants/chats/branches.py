"""Branches: a chat of a customer that continues an earlier conversation from some point of it.

Threat: a visitor copies a long chat again and again. So a copy has a limited size, and copies stop first when the
tenant has written much.
"""

import json
from collections.abc import Sequence
from secrets import token_hex

from tenants.chats import text_quota
from tenants.chats.change import Change, announce, begin, changing
from tenants.chats.records import Chat, Message, chat_of
from tenants.chats.tables import ChatMessageRow
from tenants.storage import database

MAX_LENGTH = 200_000
"""Characters of texts and turns that a branch takes with it: about twenty answers."""


def start(source: Chat, kept: Sequence[Message]) -> Chat:
    """Start a chat of the caller with copies of these messages of `source`: the newest that fit in `MAX_LENGTH`.

    A line in each chat leads to the other. Copies count in no statistics and trigger no webhooks. Files stay in the
    first chat; their names are copied. Raises the errors of `text_quota.check`.
    """
    with database.writing() as session:
        text_quota.check(session, "copy")
        row = begin(session, site=source.site, channel=source.channel, locale=source.locale)
        copies, size = list[ChatMessageRow](), 0
        for message in reversed(kept):
            copy = _copy(message, row.chat_id)
            # Databases store escapes, of six characters for a Cyrillic letter, so space is counted with them.
            size += len(copy.text) + len(json.dumps(copy.body, ensure_ascii=False))
            if copies and size > MAX_LENGTH:
                break
            text_quota.count(session, copy.text, json.dumps(copy.body))
            copies.append(copy)
        for row.last_seq, copy in enumerate(reversed(copies), start=1):
            copy.seq = row.last_seq
            session.add(copy)
        Change(session, row).add("system", "event", "", body={"event": "branched_from", "chat_id": source.chat_id})
        chat = chat_of(row)
    with changing(source.chat_id) as change:
        change.add("system", "event", "", body={"event": "branched_to", "chat_id": chat.chat_id})
    announce(chat.chat_id)
    return chat


def _copy(message: Message, chat_id: str) -> ChatMessageRow:
    return ChatMessageRow(
        chat_id=chat_id,
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

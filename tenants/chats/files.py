"""Files that customers send, stored in the database with their chat and deleted with it.

A file is scanned before it is stored, and belongs to a message once it is sent with one. A file that is never sent is
deleted after a day. Visitors can read only the files of their chats.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex

from sqlalchemy import and_, delete, func, or_, select

from tenants.accounts import policy
from tenants.chats.change import changing
from tenants.chats.tables import ChatFileRow
from tenants.core.errors import NotFound, TooLarge
from tenants.storage import database
from tenants.storage.mapping import record_of

UNSENT_FOR = timedelta(days=1)
"""Retention of a file that is not sent with a message."""


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A file of a chat, without its content."""

    file_id: str
    chat_id: str
    name: str
    media_type: str
    size: int
    message_id: str | None
    created_at: datetime


def add(chat_id: str, name: str, media_type: str, content: bytes) -> ChatFile:
    """Store a file of the customer in a chat.

    :raises TooLarge: `chat_file_too_large`, `chat_files_too_many`, `chat_storage_full`, by the tenant's policy.
    """
    rules = policy.current()
    if len(content) > rules.chat_file_bytes:
        raise TooLarge("chat_file_too_large", limit=rules.chat_file_bytes)
    # Under the chat's lock, so that files of one chat are counted correctly. Files of other chats may arrive at the
    # same time and exceed the storage limit by their size.
    with changing(chat_id) as change:
        stored = select(func.count(), func.coalesce(func.sum(ChatFileRow.size), 0)).select_from(ChatFileRow)
        count = change.session.execute(stored.where(ChatFileRow.chat_id == chat_id)).one()[0]
        if count >= rules.chat_files:
            raise TooLarge("chat_files_too_many", limit=rules.chat_files)
        if change.session.execute(stored).one()[1] + len(content) > rules.chat_storage_bytes:
            raise TooLarge("chat_storage_full")
        row = ChatFileRow(
            file_id=token_hex(12),
            chat_id=chat_id,
            name=name,
            media_type=media_type,
            size=len(content),
            content=content,
            message_id=None,
            created_at=datetime.now(UTC),
        )
        change.session.add(row)
        return file_of(row)


def get(chat_id: str, file_id: str) -> tuple[ChatFile, bytes]:
    """Return a file of a chat of the tenant with its content. Raises `NotFound` with the code `file_unknown`."""
    with database.reading() as session:
        row = session.find(ChatFileRow, file_id)
        if row is None or row.chat_id != chat_id:
            raise NotFound("file_unknown")
        return file_of(row), row.content


def of_chat(chat_id: str) -> tuple[tuple[ChatFile, bytes], ...]:
    """Return the files of a chat of the tenant with their contents, oldest first."""
    with database.reading() as session:
        rows = session.scalars(
            select(ChatFileRow).where(ChatFileRow.chat_id == chat_id).order_by(ChatFileRow.created_at)
        )
        return tuple((file_of(row), row.content) for row in rows)


def prune(now: datetime) -> int:
    """Delete the tenant's files that are older than its policy says, and those that were never sent; how many."""
    unsent = and_(ChatFileRow.message_id.is_(None), ChatFileRow.created_at < now - UNSENT_FOR)
    old = ChatFileRow.created_at < now - timedelta(days=policy.current().chat_file_days)
    expired = or_(unsent, old)
    with database.reading() as session:
        ids = session.scalars(select(ChatFileRow.file_id).where(expired)).all()
    if ids:
        with database.writing() as session:
            session.execute(delete(ChatFileRow).where(expired))
    return len(ids)


def file_of(row: ChatFileRow) -> ChatFile:
    """Convert a row to a file."""
    return record_of(ChatFile, row)

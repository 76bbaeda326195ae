"""Files that customers send: a row in the database, and an encrypted file in the store.

A file is scanned before it is stored, and belongs to a message once it is sent with one. A file that is never sent is
deleted after a day. Visitors can read only the files of their chats.

Each file has its own key, which is in the row alone: with the row its content is gone, in copies of the store too. The
file itself is removed at once by `prune`, and otherwise by the nightly `tidy`.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex

from cryptography.fernet import Fernet
from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import undefer

from settings import get_settings
from tenants.accounts import policy
from tenants.accounts.policy import MAX_FILE_SIZE
from tenants.chats.change import changing
from tenants.chats.tables import ChatFileRow
from tenants.core.errors import NotFound, TooLarge
from tenants.storage import database, disk
from tenants.storage import files as store
from tenants.storage.mapping import record_of

UNSENT_FOR = timedelta(days=1)
"""Retention of a file that is not sent with a message."""

_MOST_BYTES = 2 * MAX_FILE_SIZE
"""Bytes of an encrypted file, which is larger by a third."""

_ARRIVING_FOR = timedelta(hours=1)
"""Age at which a file of the store without a row is not about to get one."""

log = logging.getLogger("opora.chats")


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
    :raises TryAgain: `storage_full`, for a store on this machine.
    """
    rules = policy.current()
    if len(content) > rules.chat_file_bytes:
        raise TooLarge("chat_file_too_large", limit=rules.chat_file_bytes)
    row = ChatFileRow(
        file_id=token_hex(12),
        chat_id=chat_id,
        name=name,
        media_type=media_type,
        size=len(content),
        content=b"",
        secret=Fernet.generate_key().decode(),
        message_id=None,
        created_at=datetime.now(UTC),
    )
    file_id = row.file_id
    if not get_settings().files_url:
        disk.check(len(content))
    _write(file_id, str(row.secret), content)
    try:
        # Under the chat's lock, so that files of one chat are counted correctly. Files of other chats may arrive at the
        # same time and exceed the storage limit by their size.
        with changing(chat_id) as change:
            stored = select(func.count(), func.coalesce(func.sum(ChatFileRow.size), 0)).select_from(ChatFileRow)
            count = change.session.execute(stored.where(ChatFileRow.chat_id == chat_id)).one()[0]
            if count >= rules.chat_files:
                raise TooLarge("chat_files_too_many", limit=rules.chat_files)
            if change.session.execute(stored).one()[1] + len(content) > rules.chat_storage_bytes:
                raise TooLarge("chat_storage_full")
            change.session.add(row)
            return record_of(ChatFile, row)
    except BaseException:
        _remove([file_id])
        raise


def get(chat_id: str, file_id: str) -> tuple[ChatFile, bytes]:
    """Return a file of a chat of the tenant with its content. Raises `NotFound` with the code `file_unknown`."""
    with database.reading() as session:
        row = session.find(ChatFileRow, file_id)
        if row is None or row.chat_id != chat_id:
            raise NotFound("file_unknown")
        file, secret, content = record_of(ChatFile, row), row.secret, b"" if row.secret else row.content
    return file, _read(file_id, secret, content)


def of_chat(chat_id: str) -> tuple[tuple[ChatFile, bytes], ...]:
    """Return the files of a chat of the tenant with their contents, oldest first."""
    query = select(ChatFileRow).where(ChatFileRow.chat_id == chat_id).order_by(ChatFileRow.created_at)
    with database.reading() as session:
        rows = session.scalars(query.options(undefer(ChatFileRow.content))).all()
        found = [(record_of(ChatFile, row), row.secret, row.content) for row in rows]
    return tuple((file, _read(file.file_id, secret, content)) for file, secret, content in found)


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
        _remove(ids)
    return len(ids)


def tidy() -> None:
    """Move the tenant's contents out of the database, and remove files of the store whose rows are gone.

    Interrupted, it goes on where it stopped.
    """
    moved = move()
    unknown = {file_id for file_id in store.names(store.path("chat-files")) if _is_settled(file_id)}
    if unknown:
        with database.reading() as session:
            unknown -= set(session.scalars(select(ChatFileRow.file_id)))
        _remove(unknown)
    if moved or unknown:
        log.info("files of chats: %d moved out of the database, %d removed with their chats", moved, len(unknown))


def move() -> int:
    """Move the contents of the tenant's files from the database to the store, as older versions kept them there;
    return their number."""
    in_row = ChatFileRow.secret.is_(None)
    with database.reading() as session:
        ids = session.scalars(select(ChatFileRow.file_id).where(in_row)).all()
    for file_id in ids:
        with database.reading() as session:
            content = session.scalar(select(ChatFileRow.content).where(in_row, ChatFileRow.file_id == file_id))
        if content is None:
            continue
        secret = Fernet.generate_key().decode()
        # A move that was interrupted left a file with a key that is lost.
        _remove([file_id])
        _write(file_id, secret, content)
        with database.writing() as session:
            changed = update(ChatFileRow).where(in_row, ChatFileRow.file_id == file_id)
            session.execute(changed.values(secret=secret, content=b""))
    return len(ids)


def remove_all() -> None:
    """Remove all files of the tenant from the store; their rows are removed by the caller."""
    store.remove(store.path("chat-files"))


def _is_settled(file_id: str) -> bool:
    at = store.changed_at(store.path("chat-files", file_id))
    return at is not None and at < datetime.now(UTC) - _ARRIVING_FOR


def _write(file_id: str, secret: str, content: bytes) -> None:
    store.write(store.path("chat-files", file_id), Fernet(secret).encrypt(content))


def _read(file_id: str, secret: str | None, content: bytes) -> bytes:
    if secret is None:
        return content
    with NotFound("file_unknown").instead_of(FileNotFoundError):
        return Fernet(secret).decrypt(store.read(store.path("chat-files", file_id), _MOST_BYTES))


def _remove(file_ids: Iterable[str]) -> None:
    for file_id in file_ids:
        store.remove(store.path("chat-files", file_id))

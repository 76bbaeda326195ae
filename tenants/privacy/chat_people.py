"""Personal data in chats: find, export and erase. Each chat is a session, identified by the chat's id."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from threading import Event

from pydantic_core import to_jsonable_python
from sqlalchemy import ColumnElement, and_, or_, select, union

from settings import get_settings
from tenants.accounts import policy
from tenants.chats import files, outbox, tickets
from tenants.chats.records import Chat, chat_of
from tenants.chats.store import messages
from tenants.chats.tables import ChatRow, ConsentRow, OutboxRow, TicketRow
from tenants.core.batches import repeat
from tenants.desk import articles
from tenants.storage import database

_MAX_MESSAGES = 1_000_000
AT_ONCE = 50
"""Chats that one transaction deletes, with their messages."""


def of_person(subject: str | None, session_id: str | None) -> tuple[Chat, ...]:
    """List the tenant's chats of a person. `session_id` names a chat by its own id or by the session it came from."""
    with database.reading() as session:
        return tuple(chat_of(row) for row in session.scalars(select(ChatRow).where(*_theirs(subject, session_id))))


def at_site(subject: str, site: str) -> tuple[str, ...]:
    """Return the ids of a person's chats at one site."""
    theirs = (ChatRow.subject == subject, ChatRow.site == site)
    with database.reading() as session:
        return tuple(session.scalars(select(ChatRow.chat_id).where(*theirs)))


def sites_of(subject: str) -> tuple[str, ...]:
    """Return the sites at which a person has chats or has given a consent."""
    rows = (ChatRow, ConsentRow)
    named = union(*(select(row.site).where(row.subject == subject, row.site != "") for row in rows))
    with database.reading() as session:
        return tuple(sorted(session.scalars(named)))


def export(subject: str | None, session_id: str | None) -> list[object]:
    """Export the same chats for the person: messages, files, and the webhook deliveries about them."""
    exported: list[object] = []
    for chat in of_person(subject, session_id):
        sent_files = [
            {**to_jsonable_python(file), "content_base64": b64encode(content).decode()}
            for file, content in files.of_chat(chat.chat_id)
        ]
        thread = [to_jsonable_python(one) for one in messages(chat.chat_id, limit=_MAX_MESSAGES, notes=True)]
        sent = [to_jsonable_python(one) for one in outbox.of_chats([chat.chat_id])]
        exported.append({**to_jsonable_python(chat), "messages": thread, "files": sent_files, "webhooks": sent})
    return exported


def erase(subject: str | None, session_id: str | None) -> int:
    """Delete the same chats with messages, files, unpublished articles written from them and pending webhook
    deliveries, and the person's consents.

    :returns: the number of chats.
    """
    with database.writing() as session:
        ids = select(ChatRow.chat_id).where(*_theirs(subject, session_id)).scalar_subquery()
        tickets.pass_on(session, ids, with_question=False)
        articles.remove_drafts(session, ids)
        articles.unlink_chats(session, ids)
        session.remove(OutboxRow, OutboxRow.chat_id.in_(ids))
        if subject is not None and session_id is None:
            session.remove(ConsentRow, ConsentRow.subject == subject)
        return session.remove(ChatRow, *_theirs(subject, session_id))


def prune(now: datetime, closing: Event | None = None) -> int:
    """Delete the tenant's chats that are older than its policy allows, with all related data; return their number.

    A chat that waits for an operator, or that an operator has taken or snoozed, is open, however old it is. A chat that
    is back with the assistant while its ticket is open is kept for `ticket_days`, or longer if the policy allows it.
    Questions from outside are deleted in any state after `ticket_days`.

    :param closing: set when the process stops.
    """
    days, ticket_days = policy.current().chat_days, get_settings().ticket_days
    expired = [and_(ChatRow.session_id.is_not(None), ChatRow.updated_at < now - timedelta(days=ticket_days))]
    if days is not None:
        answered = and_(ChatRow.state == "bot", ChatRow.ticket_id.is_(None))
        over = or_(answered, ChatRow.state == "resolved")
        expired.append(and_(over, ChatRow.updated_at < now - timedelta(days=days)))
        longer = timedelta(days=max(days, ticket_days))
        expired.append(and_(ChatRow.state == "bot", ChatRow.updated_at < now - longer))
    old = or_(*expired)
    with database.reading() as session:
        if session.scalar(select(ChatRow.chat_id).where(old).limit(1)) is None:
            return 0
    return repeat(partial(_prune_some, old), AT_ONCE, closing)


def _prune_some(old: ColumnElement[bool], most: int) -> int:
    # Locked, so that no chat is reopened before it is deleted.
    oldest = select(ChatRow.chat_id).where(old).order_by(ChatRow.updated_at).limit(most).with_for_update()
    with database.writing() as session:
        ids = session.scalars(oldest).all()
        tickets.pass_on(session, ids, with_question=True)
        articles.unlink_chats(session, ids)
        for table in (OutboxRow, TicketRow, ChatRow):
            session.remove(table, table.chat_id.in_(ids))
        return len(ids)


def _theirs(subject: str | None, session_id: str | None) -> Iterator[ColumnElement[bool]]:
    if subject is not None:
        yield ChatRow.subject == subject
    if session_id is not None:
        yield or_(ChatRow.chat_id == session_id, ChatRow.session_id == session_id)

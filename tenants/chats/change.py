"""A change of a chat: its row under a lock, with all related records in one transaction."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from secrets import token_hex

from sqlalchemy import ColumnElement, Select, select

from tenants.chats import fanout, outbox, progress, text_quota, tickets
from tenants.chats.fanout import Announcement
from tenants.chats.records import (
    EMPTY_BODY,
    Author,
    Body,
    BotReply,
    HandoffRequest,
    Kind,
    Message,
    message_of,
)
from tenants.chats.tables import ChatFileRow, ChatMessageRow, ChatRow
from tenants.chats.tickets import Ticket
from tenants.chats.transitions import Event, State, after
from tenants.chats.webhook_events import WebhookEvent, webhook_fields
from tenants.core import context
from tenants.core.errors import Conflict, NotFound
from tenants.storage import database
from tenants.storage.tenant_session import TenantSession


class Change:
    """A chat's row, locked, with its changes in one transaction."""

    def __init__(self, session: TenantSession, row: ChatRow) -> None:
        self.session = session
        self.row = row

    def belongs_to_assistant(self, version: int) -> bool:
        """Whether the assistant has the chat, and has had it since it was at this version."""
        return self.row.state == "bot" and self.row.version == version

    def sent_before(self, client_id: str | None) -> Message | None:
        """Return the message already stored under this `client_id`."""
        if client_id is None:
            return None
        row = self.session.scalar(messages_of(self.row.chat_id, ChatMessageRow.client_id == client_id))
        return message_of(row) if row is not None else None

    def id_of(self, client_id: str | None, author: Author) -> str | None:
        """Return the id to store an author's message under: people choose their ids, and another may have taken it."""
        taken = self.sent_before(client_id)
        return client_id if taken is None or taken.author == author else f"{author}:{client_id}"

    def sent_since(self, prefix: str, since: datetime) -> int:
        """Count the messages since a time whose `client_id` begins like this."""
        sent = ChatMessageRow.client_id.startswith(prefix), ChatMessageRow.created_at >= since
        return self.session.count(ChatMessageRow, ChatMessageRow.chat_id == self.row.chat_id, *sent)

    def reply_of_another(self, seen: int, operator: str) -> Message | None:
        """Return the newest public reply after `seen` by another operator."""
        query = messages_of(
            self.row.chat_id,
            ChatMessageRow.seq > seen,
            ChatMessageRow.author == "operator",
            ChatMessageRow.kind == "text",
            ChatMessageRow.operator != operator,
        )
        row = self.session.scalars(query.order_by(ChatMessageRow.seq.desc()).limit(1)).first()
        return message_of(row) if row is not None else None

    def suggested(self, message_id: str) -> str:
        """Return the reply of a suggestion in this chat. Raises `NotFound` with the code `suggestion_unknown`."""
        suggestions = ChatMessageRow.author == "bot", ChatMessageRow.kind == "note"
        row = self.session.scalar(messages_of(self.row.chat_id, ChatMessageRow.message_id == message_id, *suggestions))
        kept = row.body.get("suggestion") if row is not None else None
        if not isinstance(kept, Mapping):
            raise NotFound("suggestion_unknown")
        return str(kept.get("reply", ""))

    def add(
        self,
        author: Author,
        kind: Kind,
        text: str,
        *,
        client_id: str | None = None,
        name: str = "",
        turn_id: str = "",
        body: Body = EMPTY_BODY,
        searchable: str | None = None,
    ) -> Message:
        """Number a message and store it.

        :param searchable: the text without personal data; the text itself is then encrypted.
        """
        now = datetime.now(UTC)
        self.row.last_seq += 1
        progress.note_message(self.row, author, kind, turn_id, body, now)
        self.row.updated_at = now
        row = ChatMessageRow(
            chat_id=self.row.chat_id,
            seq=self.row.last_seq,
            message_id=token_hex(12),
            client_id=client_id,
            author=author,
            operator=context.current().subject if author == "operator" else "",
            name=name,
            kind=kind,
            text=text if searchable is None else searchable,
            original=None if searchable is None else text,
            turn_id=turn_id,
            body=dict(body),
            created_at=now,
        )
        self.session.add(row)
        text_quota.count(self.session, text, json.dumps(row.body))
        message = message_of(row)
        if kind in ("text", "file"):
            shown = {"message_id": message.message_id, "seq": message.seq, "author": author, "kind": kind, "text": text}
            self.enqueue("chat.message", {"message": {**shown, "file": body.get("file")}})
        return message

    def unsent_file(self, file_id: str) -> ChatFileRow:
        """Return a file of this chat that was not sent yet. Raises `NotFound` with the code `file_unknown`."""
        row = self.session.find(ChatFileRow, file_id)
        if row is None or row.chat_id != self.row.chat_id or row.message_id is not None:
            raise NotFound("file_unknown")
        return row

    def become(self, event: Event) -> State:
        """Apply an event to the state; return the previous state. Raises `Conflict` for an invalid transition."""
        row, before, now = self.row, self.row.state, datetime.now(UTC)
        following = after(before, event, assigned=row.assignee is not None)
        if following is None:
            raise Conflict("chat_state", state=before)
        progress.note_event(row, event, now)
        if following == before:
            return before
        row.state = following
        row.version += 1
        row.updated_at = now
        row.waiting_since = now if following == "queued" else None
        row.snoozed_until = None
        row.resolved_at = now if following == "resolved" else None
        if before == "resolved":
            row.reopened += 1
        if following in ("bot", "resolved"):
            row.failures = 0
        if following in ("bot", "queued"):
            row.assignee = None
        if following == "resolved" or event == "handed_back":
            tickets.close_ticket(self.session, row)
        self.enqueue("chat.state", {"before": before})
        return before

    def move(self, event: Event, more: Body = EMPTY_BODY, *, text: str = "") -> None:
        """Apply an event and add a line about it to the chat, with this text or a localised one."""
        if self.become(event) != self.row.state:
            self.add("system", "event", text, body={"event": event, **more})

    def assign(self, event: Event, operator: str, name: str) -> None:
        """Assign the chat to an operator and add a line that says who has joined."""
        before = self.row.assignee
        self.become(event)
        if before == operator:
            return
        self.row.assignee = operator
        self.row.version += 1
        if before is not None:
            self.add("system", "event", "", body={"event": "left", "operator": before})
        self.add("system", "event", "", name=name, body={"event": "joined", "operator": operator, "name": name})

    def call_person(
        self,
        request: HandoffRequest,
        channel: str,
        *,
        reply: Callable[[Ticket], BotReply] | None = None,
        notice: Callable[[Ticket], str] | None = None,
        client_id: str | None = None,
    ) -> None:
        """Open the ticket and say so, unless the chat waits for a person or has one. See `store.hand_over`."""
        row = self.row
        if self.become("person_requested") == row.state:
            return
        row.failures, row.reason, row.confidence = 0, request.reason, request.confidence
        ticket = tickets.open_ticket(self.session, row, request, channel)
        if reply is not None:
            bot_reply = reply(ticket)
            self.add("bot", "text", bot_reply.text, turn_id=request.turn_id, body=bot_reply.body, client_id=client_id)
        # An operator who had put the chat off has it again.
        event = "queued" if row.state == "queued" else "woken"
        body: Body = {"event": event, "ticket_id": ticket.ticket_id, "reason": request.reason}
        words = notice(ticket) if notice is not None and event == "queued" else ""
        self.add("system", "event", words, turn_id=request.turn_id, body=body)
        about = {"ticket_id": ticket.ticket_id, "reason": request.reason, "question": request.question}
        self.enqueue("chat.handoff", about)

    def enqueue(self, event: WebhookEvent, data: Mapping[str, object]) -> None:
        """Write an event for the tenant's webhooks."""
        self.session.flush()
        outbox.enqueue(self.session, event, self.row.chat_id, {**webhook_fields(self.row), **data})


def begin(
    session: TenantSession,
    *,
    channel: str,
    locale: str,
    site: str = "",
    session_id: str | None = None,
    contact: str | None = None,
) -> ChatRow:
    """Add a chat of the caller, which the assistant has. See `ChatRow` for the parameters."""
    caller, now = context.current(), datetime.now(UTC)
    row = ChatRow(
        chat_id=token_hex(12),
        subject=caller.subject,
        site=site,
        channel=channel,
        session_id=session_id,
        contact=contact,
        locale=locale,
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    session.flush()
    outbox.enqueue(session, "chat.started", row.chat_id, webhook_fields(row))
    return row


@contextmanager
def changing(chat_id: str) -> Iterator[Change]:
    """Lock a chat. The changes of the block are committed together, then announced."""
    with database.writing() as session:
        yield Change(session, existing(session.find(ChatRow, chat_id, lock=True), chat_id))
    announce(chat_id)


def existing(row: ChatRow | None, chat_id: str) -> ChatRow:
    """Return the row, or raise `NotFound`."""
    if row is None:
        raise NotFound("chat_unknown", chat_id=chat_id)
    return row


def messages_of(chat_id: str, *conditions: ColumnElement[bool]) -> Select[ChatMessageRow]:
    """Select messages of a chat."""
    return select(ChatMessageRow).where(ChatMessageRow.chat_id == chat_id, *conditions)


def announce(chat_id: str) -> None:
    """Notify watchers that a chat has changed; call it after the commit."""
    fanout.announce(Announcement(context.current().tenant_id, chat_id))

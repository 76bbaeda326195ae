"""Chats of the tenant in context. Each change is a single transaction that includes messages, ticket and outbox.

A chat's row is locked while it changes, so messages are numbered without gaps and no change is based on a stale state.
Visitors can access their own chats only; any other chat does not exist for them.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from pydantic_core import to_jsonable_python
from sqlalchemy import select

from tenants.accounts import policy
from tenants.chats import mail, text_quota
from tenants.chats.change import Change, announce, begin, changing, existing, messages_of
from tenants.chats.records import (
    EMPTY_BODY,
    Body,
    BotReply,
    Chat,
    HandoffRequest,
    Line,
    Message,
    Posted,
    chat_of,
    message_of,
)
from tenants.chats.tables import ChatMessageRow, ChatRow
from tenants.chats.tickets import Ticket
from tenants.chats.transitions import State
from tenants.chats.undo import undoable
from tenants.core import context
from tenants.core.errors import Conflict, NotFound
from tenants.storage import database

DISCARDED = "suggestion_discarded"
"""The event of a suggestion that an operator did not want."""
_OWN, _RECENT = 20, 200
"""Chats that are listed for their customer, and messages that a turn reads."""

# Reading


def get(chat_id: str) -> Chat:
    """Return any chat of the tenant, for operators. Raises `NotFound`."""
    with database.reading() as session:
        return chat_of(existing(session.find(ChatRow, chat_id), chat_id))


def own(chat_id: str) -> Chat:
    """Return a chat of the caller. Raises `NotFound` for unknown chats and for those of other people.

    Two sites may use the same customer ids for different people: a visitor sees the chats of one site only. Questions
    from outside are not theirs to read: a backend asks for all its customers under one subject.
    """
    chat, caller = get(chat_id), context.current()
    foreign = chat.subject != caller.subject or chat.session_id is not None
    if foreign or (caller.site and chat.site not in ("", caller.site)):
        raise NotFound("chat_unknown", chat_id=chat_id)
    return chat


def of_caller() -> tuple[Chat, ...]:
    """Return the caller's chats, the last used first."""
    caller = context.current()
    mine = (ChatRow.subject == caller.subject, ChatRow.session_id.is_(None))
    query = select(ChatRow).where(*mine)
    if caller.site:
        query = query.where(ChatRow.site.in_(("", caller.site)))
    with database.reading() as session:
        return tuple(chat_of(row) for row in session.scalars(query.order_by(ChatRow.updated_at.desc()).limit(_OWN)))


def latest(
    *, state: State | None = None, assignee: str | None = None, with_ticket: bool = False, limit: int = 100
) -> tuple[Chat, ...]:
    """Return the tenant's chats, the last used first.

    :param with_ticket: only chats with an open ticket, with or without an assignee.
    """
    query = select(ChatRow)
    if state is not None:
        query = query.where(ChatRow.state == state)
    if assignee is not None:
        query = query.where(ChatRow.assignee == assignee)
    if with_ticket:
        query = query.where(ChatRow.ticket_id.is_not(None))
    with database.reading() as session:
        return tuple(chat_of(row) for row in session.scalars(query.order_by(ChatRow.updated_at.desc()).limit(limit)))


def messages(chat_id: str, *, after: int = 0, limit: int = 500, notes: bool = False) -> tuple[Message, ...]:
    """Return messages after number `after`, in order.

    :param notes: operators' notes too; never for a customer.
    """
    query = messages_of(chat_id, ChatMessageRow.seq > after)
    if not notes:
        query = query.where(ChatMessageRow.kind != "note")
    with database.reading() as session:
        return tuple(message_of(row) for row in session.scalars(query.order_by(ChatMessageRow.seq).limit(limit)))


def lines(chat_id: str, *, limit: int, notes: bool = False) -> tuple[Line, ...]:
    """Return the first messages without their turns, which take most of the memory and of the time to read.

    :param notes: operators' notes too; never for a customer.
    """
    row = ChatMessageRow
    event, file = row.body["event"].as_string(), row.body["file"]["name"].as_string()
    query = select(row.author, row.kind, row.text, row.original, row.name, event, file, row.created_at)
    query = query.where(row.chat_id == chat_id).order_by(row.seq).limit(limit)
    if not notes:
        query = query.where(row.kind != "note")
    with database.reading() as session:
        return tuple(
            Line(author, kind, text if original is None else original, *others)
            for author, kind, text, original, *others in session.execute(query)
        )


def recent(chat_id: str) -> tuple[Message, ...]:
    """Return the newest messages, in order, without notes: the history for a turn of the assistant."""
    query = messages_of(chat_id, ChatMessageRow.kind != "note")
    with database.reading() as session:
        newest = session.scalars(query.order_by(ChatMessageRow.seq.desc()).limit(_RECENT)).all()
    return tuple(message_of(row) for row in reversed(newest))


def assignee_name(chat: Chat) -> str:
    """Return the display name of the assigned operator; empty without an assignee."""
    if chat.assignee is None:
        return ""
    query = select(ChatMessageRow.name).where(
        ChatMessageRow.chat_id == chat.chat_id,
        ChatMessageRow.author.in_(("operator", "system")),
        ChatMessageRow.kind != "note",
        ChatMessageRow.name != "",
    )
    with database.reading() as session:
        return session.scalar(query.order_by(ChatMessageRow.seq.desc()).limit(1)) or ""


# Customers


def start(*, site: str = "", channel: str = "api", locale: str = "ru") -> Chat:
    """Start a chat of the caller, with the assistant. Raises the errors of `text_quota.check`."""
    with database.writing() as session:
        text_quota.check(session, "customer")
        chat = chat_of(begin(session, site=site, channel=channel, locale=locale))
    announce(chat.chat_id)
    return chat


def post(
    chat_id: str,
    text: str,
    *,
    client_id: str | None = None,
    file_id: str | None = None,
    body: Body = EMPTY_BODY,
    unread_reply: str = "",
) -> Posted:
    """Post a message of the customer. A repeated `client_id` stores nothing and returns the first message.

    :param file_id: a file of this chat to send with the message.
    :param unread_reply: the assistant's immediate reply to a file without text, which it cannot read.
    :raises NotFound: `file_unknown`, also for a file of another chat or one already sent.
    :raises OporaError: the errors of `text_quota.check`.
    """
    with changing(chat_id) as change:
        client_id = change.id_of(client_id, "customer")
        if (before := change.sent_before(client_id)) is not None:
            return Posted(chat_of(change.row), before, repeated=True)
        text_quota.check(change.session, "customer")
        change.become("customer_message")
        if file_id is None:
            message = change.add("customer", "text", text, client_id=client_id, body=body)
            return Posted(chat_of(change.row), message)
        file = change.unsent_file(file_id)
        words = text if text != file.name else ""
        described: Body = {"file_id": file_id, "name": file.name, "media_type": file.media_type, "size": file.size}
        message = change.add("customer", "file", words, client_id=client_id, body={**body, "file": described})
        file.message_id = message.message_id
        if not words and change.row.state == "bot":
            change.add("bot", "text", unread_reply, client_id=answer_id(message.message_id))
        return Posted(chat_of(change.row), message)


def rate(chat_id: str, csat: int, comment: str = "") -> Chat:
    """Store the customer's rating of the chat, from 1 (bad) to 5."""
    with changing(chat_id) as change:
        change.row.csat, change.row.csat_comment = csat, comment
        change.enqueue("chat.rated", {"csat": csat, "comment": comment})
        return chat_of(change.row)


def mark_seen(chat_id: str, seq: int, *, by_operator: bool) -> None:
    """Store how far the operator or the customer has read."""
    with changing(chat_id) as change:
        row = change.row
        seq = min(seq, row.last_seq)
        if by_operator:
            row.operator_seen = max(row.operator_seen, seq)
        else:
            row.customer_seen = max(row.customer_seen, seq)


def leave_contact(chat_id: str, contact: str, words: str) -> Chat:
    """Store how to reach the customer when they have left the chat. Repeating it changes nothing.

    :param words: what the chat says about it.
    """
    with changing(chat_id) as change:
        if change.row.contact != contact:
            mail.change_contact(change.row, contact)
            change.add("system", "event", words, body={"event": "contact_left"})
        return chat_of(change.row)


# The assistant


def answer(
    chat_id: str,
    version: int,
    text: str,
    *,
    turn_id: str,
    body: Body,
    failed: bool,
    confidence: float | None = None,
    client_id: str | None = None,
) -> Posted | None:
    """Post the assistant's answer, unless the chat has changed since `version`, when the assistant began to answer.

    :param failed: the turn gave no answer; two in a row are a reason to hand over, see `Chat.failures`.
    :param client_id: identifies the answered message, see `answer_id`.
    :returns: None if an operator has taken the chat over, or the message was answered or stopped before; nothing is
        stored then.
    """
    with changing(chat_id) as change:
        row = change.row
        if not change.belongs_to_assistant(version) or change.sent_before(client_id) is not None:
            return None
        row.failures = row.failures + 1 if failed else 0
        row.confidence = confidence
        message = change.add("bot", "text", text, turn_id=turn_id, body=body, client_id=client_id)
        return Posted(chat_of(row), message)


def answer_id(request_id: str) -> str:
    """Return the `client_id` of the answer to a message, or of the line that replaces it: only one is stored."""
    return f"answer:{request_id}"


def stop(chat_id: str, request_id: str, turn_id: str = "") -> Message | None:
    """Record that the customer stopped an answer. Returns None if the message was answered before."""
    with changing(chat_id) as change:
        if change.sent_before(client_id := answer_id(request_id)) is not None:
            return None
        return change.add("system", "event", "", client_id=client_id, body={"event": "stopped", "turn_id": turn_id})


def delay(chat_id: str, request_id: str, words: str) -> None:
    """Tell the customer that the answer to a message comes later. Telling it again changes nothing."""
    with changing(chat_id) as change:
        if change.sent_before(client_id := f"delayed:{request_id}") is None:
            change.add("system", "event", words, client_id=client_id, body={"event": "delayed"})


def ask_again(chat_id: str, version: int, message_id: str, replaced: str) -> Message:
    """Have a customer's message answered again, replacing the bot's message `replaced`.

    Raises `Conflict`, `chat_changed`, when the chat is not the assistant's any more.
    """
    with changing(chat_id) as change:
        row = change.row
        if not change.belongs_to_assistant(version):
            raise Conflict("chat_changed", state=row.state, version=row.version)
        client_id = f"again:{replaced}"
        if (before := change.sent_before(client_id)) is not None:
            return before
        text_quota.check(change.session, "customer")
        event: Body = {"event": "asked_again", "message_id": message_id, "replaces": replaced}
        return change.add("system", "event", "", client_id=client_id, body=event)


def hand_over(
    chat_id: str,
    request: HandoffRequest,
    *,
    version: int | None = None,
    reply: Callable[[Ticket], BotReply] | None = None,
    notice: Callable[[Ticket], str] | None = None,
    client_id: str | None = None,
) -> Chat | None:
    """Ask for a person: ticket, state, notice and outbox entry in one transaction. There is one open ticket per chat.

    Repeating it while the chat waits, or while a person has it, changes nothing.

    :param version: of the chat when the assistant began to answer; None on the customer's own request.
    :param reply: the assistant's answer with the ticket.
    :param notice: the text of the system's line about the ticket, without a `reply`.
    :param client_id: identifies the message that `reply` answers, see `answer_id`.
    :returns: None if an operator has taken the chat over, or the message was answered or stopped before.
    """
    channel = policy.current().handoff_channel
    with changing(chat_id) as change:
        row = change.row
        if version is not None and not change.belongs_to_assistant(version):
            return None
        if change.sent_before(client_id) is not None:
            return None
        change.call_person(request, channel, reply=reply, notice=notice, client_id=client_id)
        return chat_of(row)


def receive(
    request: HandoffRequest,
    *,
    reply: Callable[[Ticket], BotReply],
    searchable: str,
    locale: str = "ru",
    session_id: str = "",
    contact: str | None = None,
) -> Chat:
    """Begin a chat in the queue with a question of the caller that was asked outside of chats, such as over the API.

    :param reply: what the caller was answered about the ticket.
    :param searchable: the question without personal data.
    :param session_id: the conversation that the question belongs to.
    :param contact: how to reach the customer, who does not read the chat.
    """
    channel = policy.current().handoff_channel
    with database.writing() as session:
        row = begin(session, channel="api", locale=locale, session_id=session_id, contact=contact)
        change = Change(session, row)
        asked = change.add("customer", "text", request.question, searchable=searchable)
        change.call_person(request, channel, reply=reply, client_id=answer_id(asked.message_id))
        chat = chat_of(row)
    announce(chat.chat_id)
    return chat


# Operators


def reply(
    chat_id: str, text: str, *, seen: int, name: str = "", client_id: str | None = None, suggestion: str | None = None
) -> Posted:
    """Post a public reply of the caller, who thereby takes the chat over.

    :param seen: the number of the last message that the operator has seen.
    :param suggestion: the message of the suggestion that it was written from; stored with whether it was changed.
    :raises Conflict: `chat_answered`, when another operator has replied since.
    :raises NotFound: `suggestion_unknown`.
    """
    operator, wait = context.current().subject, mail.minutes()
    with changing(chat_id) as change:
        client_id = change.id_of(client_id, "operator")
        if (before := change.sent_before(client_id)) is not None:
            return Posted(chat_of(change.row), before, repeated=True)
        if (newer := change.reply_of_another(seen, operator)) is not None:
            raise Conflict("chat_answered", seq=newer.seq, name=newer.name)
        text_quota.check(change.session, "operator")
        body = EMPTY_BODY if suggestion is None else _use_of(change, suggestion, text)
        change.assign("operator_replied", operator, name)
        message = change.add("operator", "text", text, client_id=client_id, name=name, body=body)
        mail.enqueue_reply(change.session, change.row, wait)
        return Posted(chat_of(change.row), message)


def note(chat_id: str, text: str, *, name: str = "") -> Posted:
    """Post a note of the caller for other operators. The customer does not see it."""
    with changing(chat_id) as change:
        text_quota.check(change.session, "operator")
        return Posted(chat_of(change.row), change.add("operator", "note", text, name=name))


def suggest(chat_id: str, text: str, body: Body) -> Posted:
    """Post a suggested reply of the assistant for operators. The customer does not see it."""
    with changing(chat_id) as change:
        return Posted(chat_of(change.row), change.add("bot", "note", text, body=body))


def discard_suggestion(chat_id: str, message_id: str) -> Posted:
    """Record that an operator discarded a suggestion. Repeating it changes nothing. Raises `NotFound`."""
    with changing(chat_id) as change:
        change.suggested(message_id)
        if (before := change.sent_before(client_id := f"{DISCARDED}:{message_id}")) is not None:
            return Posted(chat_of(change.row), before, repeated=True)
        body: Body = {"event": DISCARDED, "message_id": message_id, "operator": context.current().subject}
        return Posted(chat_of(change.row), change.add("system", "note", "", client_id=client_id, body=body))


def take(chat_id: str, *, version: int | None = None, name: str = "") -> Chat:
    """Assign the chat to the caller.

    :param version: of the chat that the operator has seen; None skips the check.
    :raises Conflict: `chat_changed`, if it has changed since.
    """
    return _operated(chat_id, version, lambda change: change.assign("taken", context.current().subject, name))


def transfer(chat_id: str, operator: str, *, version: int | None = None, name: str = "") -> Chat:
    """Assign the chat to another operator."""
    return _operated(chat_id, version, lambda change: change.assign("transferred", operator, name))


def hand_back(chat_id: str, *, version: int | None = None) -> Chat:
    """Return the chat to the assistant and close the ticket."""
    return _operated(chat_id, version, lambda change: change.move("handed_back"))


def snooze(chat_id: str, until: datetime, *, version: int | None = None) -> Chat:
    """Remove the chat from the queue until then, or until the customer writes."""

    def change_to_snoozed(change: "Change") -> None:
        change.move("snoozed", {"until": to_jsonable_python(until.astimezone(UTC))})
        change.row.snoozed_until = until

    return _operated(chat_id, version, change_to_snoozed)


def resolve(chat_id: str, *, version: int | None = None) -> Chat:
    """Resolve the chat. The customer's next message goes to the assistant."""
    return _operated(chat_id, version, lambda change: change.move("resolved"))


def reopen(chat_id: str, *, version: int | None = None, name: str = "") -> Chat:
    """Reopen a resolved chat for the caller."""
    return _operated(chat_id, version, lambda change: change.assign("reopened", context.current().subject, name))


def _use_of(change: Change, suggestion: str, text: str) -> Body:
    use = "accepted" if text.strip() == change.suggested(suggestion).strip() else "edited"
    return {"suggestion": {"message_id": suggestion, "use": use}}


def _operated(chat_id: str, version: int | None, act: Callable[[Change], None]) -> Chat:
    with changing(chat_id) as change:
        if version is not None and change.row.version != version:
            raise Conflict("chat_changed", state=change.row.state, version=change.row.version)
        text_quota.check(change.session, "operator")
        with undoable(change):
            act(change)
        return chat_of(change.row)

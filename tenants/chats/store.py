"""Chats of the tenant in context: every change of one is a single transaction, messages, ticket and outbox included.

A chat's row is locked while it changes, so messages are numbered without gaps and nobody acts on a state that is gone.
Visitors reach their own chats alone: what belongs to somebody else is missing for them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Literal, TypeAlias

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from tenants import context, database, handoffs
from tenants.chats import fanout, outbox
from tenants.chats.fanout import Announcement
from tenants.chats.tables import ChatFileRow, ChatMessageRow, ChatRow, ConsentRow, OutboxRow
from tenants.chats.transitions import STATES, Event, State, after
from tenants.errors import Conflict, NotFound
from tenants.handoffs import Ticket
from tenants.models import TicketRow

if TYPE_CHECKING:
    from tenants.index.protocol import Json

    Body: TypeAlias = Mapping[str, Json]
else:
    Body: TypeAlias = Mapping

Author: TypeAlias = Literal["customer", "bot", "operator", "system"]
Kind: TypeAlias = Literal["text", "note", "event", "file"]
NOTHING: Body = {}
_EVERYTHING = 1_000_000


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `kind` `note` is for operators alone; `event` says in `body` what has happened to the chat."""

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
class Chat:
    """A chat as it stands. `version` counts changes of state or assignee, `last_seq` messages."""

    chat_id: str
    subject: str
    site: str
    channel: str
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
    waiting_since: datetime | None
    snoozed_until: datetime | None
    resolved_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Posted:
    """A stored message and the chat after it. `repeated`: it had been stored before, under the same `client_id`."""

    chat: Chat
    message: Message
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What the assistant says in a chat, with the whole turn in `body`."""

    text: str
    body: Body


@dataclass(frozen=True, slots=True)
class HandoffRequest:
    """Why a chat goes to a person. `draft` is the unverified answer, for operators' eyes only."""

    reason: str
    question: str = ""
    turn_id: str = ""
    draft: str = ""
    confidence: float | None = None


# Reading


def get(chat_id: str) -> Chat:
    """Any chat of the tenant, for operators. Raises `NotFound`."""
    with database.reading() as session:
        return _chat(_found(session.get(ChatRow, (context.current().tenant_id, chat_id)), chat_id))


def own(chat_id: str) -> Chat:
    """A chat of the caller. Raises `NotFound`, for somebody else's as for a missing one."""
    chat = get(chat_id)
    if chat.subject != context.current().subject:
        raise NotFound("chat_unknown", chat_id=chat_id)
    return chat


def of_caller(*, limit: int = 20) -> tuple[Chat, ...]:
    """The caller's chats, the last used first."""
    caller = context.current()
    query = select(ChatRow).where(ChatRow.tenant_id == caller.tenant_id, ChatRow.subject == caller.subject)
    with database.reading() as session:
        return tuple(_chat(row) for row in session.scalars(query.order_by(ChatRow.updated_at.desc()).limit(limit)))


def latest(*, state: State | None = None, assignee: str | None = None, limit: int = 100) -> tuple[Chat, ...]:
    """The tenant's chats, the last used first."""
    query = select(ChatRow).where(ChatRow.tenant_id == context.current().tenant_id)
    if state is not None:
        query = query.where(ChatRow.state == state)
    if assignee is not None:
        query = query.where(ChatRow.assignee == assignee)
    with database.reading() as session:
        return tuple(_chat(row) for row in session.scalars(query.order_by(ChatRow.updated_at.desc()).limit(limit)))


def messages(chat_id: str, *, after: int = 0, limit: int = 500, notes: bool = False) -> tuple[Message, ...]:
    """Messages behind number `after`, in order.

    :param notes: operators' notes too; never for a customer.
    """
    query = select(ChatMessageRow).where(
        ChatMessageRow.tenant_id == context.current().tenant_id,
        ChatMessageRow.chat_id == chat_id,
        ChatMessageRow.seq > after,
    )
    if not notes:
        query = query.where(ChatMessageRow.kind != "note")
    with database.reading() as session:
        return tuple(_message(row) for row in session.scalars(query.order_by(ChatMessageRow.seq).limit(limit)))


def recent(chat_id: str, *, limit: int = 200) -> tuple[Message, ...]:
    """The newest messages, in order, without notes: what a turn of the assistant may look back at."""
    query = select(ChatMessageRow).where(
        ChatMessageRow.tenant_id == context.current().tenant_id,
        ChatMessageRow.chat_id == chat_id,
        ChatMessageRow.kind != "note",
    )
    with database.reading() as session:
        newest = session.scalars(query.order_by(ChatMessageRow.seq.desc()).limit(limit)).all()
    return tuple(_message(row) for row in reversed(newest))


def assignee_name(chat: Chat) -> str:
    """How customers know the operator who has the chat; empty when nobody has it."""
    if chat.assignee is None:
        return ""
    query = select(ChatMessageRow.name).where(
        ChatMessageRow.tenant_id == context.current().tenant_id,
        ChatMessageRow.chat_id == chat.chat_id,
        ChatMessageRow.author.in_(("operator", "system")),
        ChatMessageRow.kind != "note",
        ChatMessageRow.name != "",
    )
    with database.reading() as session:
        return session.scalar(query.order_by(ChatMessageRow.seq.desc()).limit(1)) or ""


# What customers do


def start(*, site: str = "", channel: str = "api", locale: str = "ru") -> Chat:
    """A new chat of the caller, with the assistant."""
    caller, now = context.current(), datetime.now(UTC)
    row = ChatRow(
        tenant_id=caller.tenant_id,
        chat_id=token_hex(12),
        subject=caller.subject,
        site=site,
        channel=channel,
        locale=locale,
        state="bot",
        version=0,
        last_seq=0,
        reason="",
        failures=0,
        reopened=0,
        csat_comment="",
        customer_seen=0,
        operator_seen=0,
        created_at=now,
        updated_at=now,
    )
    with database.writing() as session:
        session.add(row)
        session.flush()
        outbox.enqueue(session, "chat.started", row.chat_id, _shown(row))
        chat = _chat(row)
    _announce(chat.chat_id)
    return chat


def post(chat_id: str, text: str, *, client_id: str | None = None, kind: Kind = "text", body: Body = NOTHING) -> Posted:
    """A message of the customer. The same `client_id` again stores nothing and returns what was stored."""
    with _changing(chat_id) as change:
        if (before := change.known(client_id)) is not None:
            return Posted(_chat(change.row), before, repeated=True)
        change.become("customer_message")
        message = change.add("customer", kind, text, client_id=client_id, body=body)
        return Posted(_chat(change.row), message)


def rate(chat_id: str, csat: int, comment: str = "") -> Chat:
    """What the customer thinks of the whole chat, from 1 (bad) to 5."""
    with _changing(chat_id) as change:
        change.row.csat, change.row.csat_comment = csat, comment
        change.tell("chat.rated", {"csat": csat, "comment": comment})
        return _chat(change.row)


def consent(text: str, *, site: str, address: str) -> None:
    """Keep what the caller has agreed to, as it was shown."""
    caller = context.current()
    row = ConsentRow(
        tenant_id=caller.tenant_id,
        consent_id=token_hex(12),
        subject=caller.subject,
        site=site,
        text=text,
        address=address,
        at=datetime.now(UTC),
    )
    with database.writing() as session:
        session.add(row)


def mark_seen(chat_id: str, seq: int, *, by_operator: bool) -> None:
    """Note how far somebody has read."""
    with _changing(chat_id) as change:
        row = change.row
        seq = min(seq, row.last_seq)
        if by_operator:
            row.operator_seen = max(row.operator_seen, seq)
        else:
            row.customer_seen = max(row.customer_seen, seq)


# What the assistant does


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
    """The assistant's answer, if the chat is still its own: `version` is the one that it began to answer at.

    :param failed: the turn gave no answer; two in a row are a reason to hand over, see `Chat.failures`.
    :param client_id: names what it answers, see `answer_id`.
    :returns: None when somebody has taken the chat over meanwhile, or this was answered or stopped before. Nothing is
        stored then.
    """
    with _changing(chat_id) as change:
        row = change.row
        if row.state != "bot" or row.version != version or change.known(client_id) is not None:
            return None
        row.failures = row.failures + 1 if failed else 0
        row.confidence = confidence
        message = change.add("bot", "text", text, turn_id=turn_id, body=body, client_id=client_id)
        return Posted(_chat(row), message)


def answer_id(request_id: str) -> str:
    """The `client_id` of the answer to a message, or of the line that says there will be none: there is one of them."""
    return f"answer:{request_id}"


def stop(chat_id: str, request_id: str, turn_id: str = "") -> Message | None:
    """Have no answer to a message: the customer does not want it any more. None when it was answered before."""
    with _changing(chat_id) as change:
        if change.known(client_id := answer_id(request_id)) is not None:
            return None
        return change.add("system", "event", "", client_id=client_id, body={"event": "stopped", "turn_id": turn_id})


def ask_again(chat_id: str, version: int, message_id: str, replaced: str) -> Message:
    """Have a customer's message answered once more, in place of the bot's message `replaced`.

    Raises `Conflict`, `chat_changed`, when the chat is not the assistant's any more.
    """
    with _changing(chat_id) as change:
        row = change.row
        if row.state != "bot" or row.version != version:
            raise Conflict("chat_changed", state=row.state, version=row.version)
        client_id = f"again:{replaced}"
        if (before := change.known(client_id)) is not None:
            return before
        event: Body = {"event": "asked_again", "message_id": message_id, "replaces": replaced}
        return change.add("system", "event", "", client_id=client_id, body=event)


def hand_over(
    chat_id: str,
    request: HandoffRequest,
    *,
    version: int | None = None,
    say: Callable[[Ticket], Said] | None = None,
    client_id: str | None = None,
) -> Posted | None:
    """Ask for a person: ticket, state, notice and outbox entry in one transaction. There is one open ticket per chat.

    :param version: of the chat as the assistant began to answer it; None when the customer asks, at any moment.
    :param say: what the assistant tells the customer about the ticket.
    :param client_id: names what that answers, see `answer_id`.
    :returns: None when somebody has taken the chat over meanwhile, or this was answered or stopped before.
    """
    with _changing(chat_id) as change:
        row = change.row
        if version is not None and (row.state != "bot" or row.version != version):
            return None
        if change.known(client_id) is not None:
            return None
        waiting = row.state == "queued"
        change.become("person_requested")
        row.failures, row.reason, row.confidence = 0, request.reason, request.confidence
        ticket = change.open_ticket(request)
        if say is not None:
            said = say(ticket)
            change.add("bot", "text", said.text, turn_id=request.turn_id, body=said.body, client_id=client_id)
        event: Body = {"event": "queued", "ticket_id": ticket.ticket_id, "reason": request.reason}
        message = change.add("system", "event", "", turn_id=request.turn_id, body=event)
        if not waiting:
            about = {"ticket_id": ticket.ticket_id, "reason": request.reason, "question": request.question}
            change.tell("chat.handoff", about)
        return Posted(_chat(row), message)


# What operators do


def reply(chat_id: str, text: str, *, seen: int, name: str = "", client_id: str | None = None) -> Posted:
    """A public reply of the caller, who takes the chat over with it.

    :param seen: the number of the last message that the operator has seen.
    :raises Conflict: `chat_answered`, when another operator has replied since.
    """
    operator = context.current().subject
    with _changing(chat_id) as change:
        if (before := change.known(client_id)) is not None:
            return Posted(_chat(change.row), before, repeated=True)
        if (newer := change.reply_of_another(seen, operator)) is not None:
            raise Conflict("chat_answered", seq=newer.seq, name=newer.name)
        change.assign("operator_replied", operator, name)
        message = change.add("operator", "text", text, client_id=client_id, name=name)
        return Posted(_chat(change.row), message)


def note(chat_id: str, text: str, *, name: str = "") -> Posted:
    """A note of the caller for other operators. It changes nothing for the customer."""
    with _changing(chat_id) as change:
        return Posted(_chat(change.row), change.add("operator", "note", text, name=name))


def take(chat_id: str, *, version: int | None = None, name: str = "") -> Chat:
    """The caller has the chat from here on.

    :param version: of the chat as the operator saw it; None takes whatever it has become.
    :raises Conflict: `chat_changed`, when it has changed since.
    """
    return _operated(chat_id, version, lambda change: change.assign("taken", context.current().subject, name))


def transfer(chat_id: str, operator: str, *, version: int | None = None, name: str = "") -> Chat:
    """Another operator has the chat from here on."""
    return _operated(chat_id, version, lambda change: change.assign("transferred", operator, name))


def hand_back(chat_id: str, *, version: int | None = None) -> Chat:
    """The assistant has the chat again; the ticket is closed."""
    return _operated(chat_id, version, lambda change: change.move("handed_back"))


def snooze(chat_id: str, until: datetime, *, version: int | None = None) -> Chat:
    """Out of the queue until then, or until the customer writes."""

    def change_to_snoozed(change: "_Change") -> None:
        change.move("snoozed", {"until": until.isoformat()})
        change.row.snoozed_until = until

    return _operated(chat_id, version, change_to_snoozed)


def resolve(chat_id: str, *, version: int | None = None) -> Chat:
    """Done. The customer's next message goes to the assistant."""
    return _operated(chat_id, version, lambda change: change.move("resolved"))


def reopen(chat_id: str, *, version: int | None = None, name: str = "") -> Chat:
    """The caller goes on with a resolved chat."""
    return _operated(chat_id, version, lambda change: change.assign("reopened", context.current().subject, name))


# What time does


def wake_up(now: datetime | None = None) -> tuple[str, ...]:
    """Bring snoozed chats of the tenant back whose time has come; their ids."""
    now = now or datetime.now(UTC)
    return _each_due(ChatRow.state == "snoozed", ChatRow.snoozed_until <= now, event="woken")


def give_up_waiting(since: datetime) -> tuple[str, ...]:
    """Return chats of the tenant to the assistant that nobody has taken since; their ids. The ticket stays open."""
    return _each_due(ChatRow.state == "queued", ChatRow.waiting_since <= since, event="queue_timed_out")


# People


def of_person(subject: str | None, session_id: str | None) -> tuple[Chat, ...]:
    """The tenant's chats of a person; a chat is a session of its own, named by its id."""
    with database.reading() as session:
        return tuple(_chat(row) for row in session.scalars(select(ChatRow).where(*_theirs(subject, session_id))))


def export(subject: str | None, session_id: str | None) -> list[object]:
    """The same chats for the person to read: with messages, file names, and what was sent to webhooks about them."""
    tenant_id = context.current().tenant_id
    exported: list[object] = []
    for chat in of_person(subject, session_id):
        with database.reading() as session:
            in_chat = (ChatFileRow.tenant_id == tenant_id, ChatFileRow.chat_id == chat.chat_id)
            files = session.execute(select(ChatFileRow.name, ChatFileRow.media_type, ChatFileRow.size).where(*in_chat))
            named = [{"name": name, "media_type": media_type, "size": size} for name, media_type, size in files]
        thread = [_plain(asdict(one)) for one in messages(chat.chat_id, limit=_EVERYTHING, notes=True)]
        sent = [_plain(asdict(one)) for one in outbox.of_chats([chat.chat_id])]
        exported.append({**_plain(asdict(chat)), "messages": thread, "files": named, "webhooks": sent})
    return exported


def consents(subject: str | None, session_id: str | None) -> list[object]:
    """What a person has agreed to. A consent belongs to no chat."""
    if subject is None or session_id is not None:
        return []
    query = select(ConsentRow).where(ConsentRow.tenant_id == context.current().tenant_id, ConsentRow.subject == subject)
    with database.reading() as session:
        return [
            {"site": row.site, "text": row.text, "address": row.address, "at": row.at.isoformat()}
            for row in session.scalars(query)
        ]


def erase(subject: str | None, session_id: str | None) -> None:
    """Forget the same chats with their messages and files, what waits for webhooks, and the person's consents."""
    tenant_id = context.current().tenant_id
    with database.writing() as session:
        ids = select(ChatRow.chat_id).where(*_theirs(subject, session_id)).scalar_subquery()
        session.execute(delete(OutboxRow).where(OutboxRow.tenant_id == tenant_id, OutboxRow.chat_id.in_(ids)))
        session.execute(delete(ChatRow).where(*_theirs(subject, session_id)))
        if subject is not None and session_id is None:
            mine = (ConsentRow.tenant_id == tenant_id, ConsentRow.subject == subject)
            session.execute(delete(ConsentRow).where(*mine))


class _Change:
    """A chat's row, locked, and what is done to it in one transaction."""

    def __init__(self, session: Session, row: ChatRow) -> None:
        self.session = session
        self.row = row

    def known(self, client_id: str | None) -> Message | None:
        """The message that was stored under this `client_id` before."""
        if client_id is None:
            return None
        row = self.session.scalar(
            select(ChatMessageRow).where(
                ChatMessageRow.tenant_id == self.row.tenant_id,
                ChatMessageRow.chat_id == self.row.chat_id,
                ChatMessageRow.client_id == client_id,
            )
        )
        return _message(row) if row is not None else None

    def reply_of_another(self, seen: int, operator: str) -> Message | None:
        """The newest public reply behind `seen` that is not this operator's."""
        query = select(ChatMessageRow).where(
            ChatMessageRow.tenant_id == self.row.tenant_id,
            ChatMessageRow.chat_id == self.row.chat_id,
            ChatMessageRow.seq > seen,
            ChatMessageRow.author == "operator",
            ChatMessageRow.kind == "text",
            ChatMessageRow.operator != operator,
        )
        row = self.session.scalars(query.order_by(ChatMessageRow.seq.desc()).limit(1)).first()
        return _message(row) if row is not None else None

    def add(
        self,
        author: Author,
        kind: Kind,
        text: str,
        *,
        client_id: str | None = None,
        name: str = "",
        turn_id: str = "",
        body: Body = NOTHING,
    ) -> Message:
        """Number a message and store it."""
        now = datetime.now(UTC)
        self.row.last_seq += 1
        self.row.updated_at = now
        row = ChatMessageRow(
            tenant_id=self.row.tenant_id,
            chat_id=self.row.chat_id,
            seq=self.row.last_seq,
            message_id=token_hex(12),
            client_id=client_id,
            author=author,
            operator=context.current().subject if author == "operator" else "",
            name=name,
            kind=kind,
            text=text,
            turn_id=turn_id,
            body=dict(body),
            created_at=now,
        )
        self.session.add(row)
        message = _message(row)
        if kind in ("text", "file"):
            told = {"message_id": message.message_id, "seq": message.seq, "author": author, "kind": kind, "text": text}
            self.tell("chat.message", {"message": told})
        return message

    def become(self, event: Event) -> State:
        """Follow the table; the state before. Raises `Conflict` where it knows no way."""
        row, before = self.row, _state(self.row.state)
        following = after(before, event, assigned=row.assignee is not None)
        if following is None:
            raise Conflict("chat_state", state=before)
        if following == before:
            return before
        now = datetime.now(UTC)
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
            self.close_ticket()
        self.tell("chat.state", {"before": before})
        return before

    def move(self, event: Event, more: Body = NOTHING) -> None:
        """Follow the table, with a line in the chat that says so."""
        if self.become(event) != self.row.state:
            self.add("system", "event", "", body={"event": event, **more})

    def assign(self, event: Event, operator: str, name: str) -> None:
        """Follow the table to an operator, with a line in the chat that says who has joined."""
        before = self.row.assignee
        self.become(event)
        if before == operator:
            return
        self.row.assignee = operator
        self.row.version += 1
        if before is not None:
            self.add("system", "event", "", body={"event": "left", "operator": before})
        self.add("system", "event", "", name=name, body={"event": "joined", "operator": operator, "name": name})

    def open_ticket(self, request: HandoffRequest) -> Ticket:
        """The chat's open ticket, opened now when it has none."""
        row = self.row
        stored = self.session.get(TicketRow, (row.tenant_id, row.ticket_id)) if row.ticket_id else None
        if stored is None:
            stored = handoffs.new_ticket(
                turn_id=request.turn_id,
                reason=request.reason,
                question=request.question,
                draft=request.draft,
                session_id=row.chat_id,
                chat_id=row.chat_id,
                subject=row.subject,
            )
            self.session.add(stored)
            row.ticket_id = stored.ticket_id
        return handoffs.ticket_of(stored)

    def close_ticket(self) -> None:
        """The chat's ticket is done with."""
        if self.row.ticket_id is None:
            return
        ticket = self.session.get(TicketRow, (self.row.tenant_id, self.row.ticket_id))
        if ticket is not None:
            ticket.closed_at = datetime.now(UTC)
        self.row.ticket_id = None

    def tell(self, event: outbox.EventName, data: Mapping[str, object]) -> None:
        """Write an event for the tenant's webhooks."""
        self.session.flush()
        outbox.enqueue(self.session, event, self.row.chat_id, {**_shown(self.row), **data})


@contextmanager
def _changing(chat_id: str) -> Iterator[_Change]:
    """A chat under a lock. What the block does is stored as one, and announced once it is."""
    with database.writing() as session:
        # Not the stronger lock: that would hold up whoever inserts a message into this chat.
        key = (context.current().tenant_id, chat_id)
        row = session.get(ChatRow, key, with_for_update={"key_share": True})
        yield _Change(session, _found(row, chat_id))
    _announce(chat_id)


def _operated(chat_id: str, version: int | None, act: Callable[[_Change], None]) -> Chat:
    with _changing(chat_id) as change:
        if version is not None and change.row.version != version:
            raise Conflict("chat_changed", state=change.row.state, version=change.row.version)
        act(change)
        return _chat(change.row)


def _each_due(*conditions: ColumnElement[bool], event: Event) -> tuple[str, ...]:
    tenant_id = context.current().tenant_id
    query = select(ChatRow.chat_id).where(ChatRow.tenant_id == tenant_id, *conditions)
    with database.reading() as session:
        due = session.scalars(query).all()
    moved = []
    for chat_id in due:
        with _changing(chat_id) as change:
            # It may have changed between the two transactions.
            fits = (
                select(func.count())
                .select_from(ChatRow)
                .where(ChatRow.tenant_id == tenant_id, ChatRow.chat_id == chat_id, *conditions)
            )
            if change.session.scalar(fits):
                change.move(event)
                moved.append(chat_id)
    return tuple(moved)


def _announce(chat_id: str) -> None:
    fanout.announce(Announcement(context.current().tenant_id, chat_id))


def _theirs(subject: str | None, session_id: str | None) -> Iterator[ColumnElement[bool]]:
    yield ChatRow.tenant_id == context.current().tenant_id
    if subject is not None:
        yield ChatRow.subject == subject
    if session_id is not None:
        yield ChatRow.chat_id == session_id


def _found(row: ChatRow | None, chat_id: str) -> ChatRow:
    if row is None:
        raise NotFound("chat_unknown", chat_id=chat_id)
    return row


def _state(stored: str) -> State:
    return next(state for state in STATES if state == stored)


def _plain(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields as JSON has them."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}


def _shown(row: ChatRow) -> dict[str, object]:
    """What a webhook learns of a chat with every event."""
    return {
        "chat_id": row.chat_id,
        "subject": row.subject,
        "site": row.site,
        "channel": row.channel,
        "state": row.state,
        "assignee": row.assignee,
        "ticket_id": row.ticket_id,
    }


def _chat(row: ChatRow) -> Chat:
    return Chat(
        chat_id=row.chat_id,
        subject=row.subject,
        site=row.site,
        channel=row.channel,
        locale=row.locale,
        state=_state(row.state),
        assignee=row.assignee,
        version=row.version,
        last_seq=row.last_seq,
        ticket_id=row.ticket_id,
        reason=row.reason,
        confidence=row.confidence,
        failures=row.failures,
        reopened=row.reopened,
        csat=row.csat,
        csat_comment=row.csat_comment,
        customer_seen=row.customer_seen,
        operator_seen=row.operator_seen,
        waiting_since=row.waiting_since,
        snoozed_until=row.snoozed_until,
        resolved_at=row.resolved_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


_AUTHORS: tuple[Author, ...] = ("customer", "bot", "operator", "system")
_KINDS: tuple[Kind, ...] = ("text", "note", "event", "file")


def _message(row: ChatMessageRow) -> Message:
    return Message(
        message_id=row.message_id,
        seq=row.seq,
        author=next(author for author in _AUTHORS if author == row.author),
        kind=next(kind for kind in _KINDS if kind == row.kind),
        text=row.text,
        name=row.name,
        client_id=row.client_id,
        turn_id=row.turn_id,
        body=row.body,
        created_at=row.created_at,
    )

"""View of a chat for its page: messages with their evidence, and the operator's available actions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from components.language.texts import text, text_or
from pipelines.ask import effects
from pipelines.ask.chats import suggested_replies, thread
from pipelines.ask.chats.suggested_replies import Fate, Suggestion
from pipelines.ask.contract import ArticlePart, CitationPart, TurnAnswer
from tenants.accounts import policy, registry
from tenants.chats import mail, tickets
from tenants.chats.records import Chat, Message
from tenants.chats.transitions import Event, after
from tenants.chats.visitors import ANONYMOUS, IDENTIFIED
from tenants.core.context import COMMAND_LINE
from tenants.desk import replies
from tenants.desk.operators import Operator
from tenants.desk.replies import CannedReply

ACTS: Mapping[str, Event] = {
    "take": "taken",
    "hand_back": "handed_back",
    "snooze": "snoozed",
    "resolve": "resolved",
    "reopen": "reopened",
}
"""Operator action on a chat and its event."""
_SHOWN_OF_ID = 6
WITH_ARTICLES = frozenset({"low_confidence", "clarify", "refused", "cannot_answer"})
"""Outcomes that the widget shows articles with, see `ui/src/answer.ts`."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Passage of the evidence; `before`, `quoted` and `rest` are its text, split around the quotation."""

    citation: CitationPart
    before: str
    quoted: str
    rest: str


@dataclass(frozen=True, slots=True)
class Bubble:
    """Message for display.

    `turn` is the assistant's whole turn, if this version can parse it; `fate` is the result of a suggestion.
    `superseded`: the customer has edited it, or gone back to an earlier message, and no longer sees it.
    `cards` are the articles that the customer saw below the text. `email` says how it came by e-mail, if it did.
    """

    message: Message
    who: str
    text: str
    turn: TurnAnswer | None
    passages: tuple[Passage, ...]
    cards: tuple[ArticlePart, ...]
    email: str
    suggestion: Suggestion | None
    fate: Fate
    superseded: bool


def bubbles(messages: Sequence[Message], people: Mapping[str, str], locale: str) -> tuple[Bubble, ...]:
    """Return messages for display."""
    fates = suggested_replies.fates(messages)
    gone = thread.superseded(messages)
    return tuple(
        _bubble(one, people, locale, fates.get(one.message_id, "offered"), superseded=one.message_id in gone)
        for one in messages
    )


def names(staff: Iterable[Operator]) -> Mapping[str, str]:
    return {one.login: one.name for one in staff}


def customer(chat: Chat, locale: str) -> str:
    """Return a name for a chat's customer: the contact, the verified identity, or the beginning of a number."""
    if chat.contact:
        return chat.contact
    if chat.subject == COMMAND_LINE:
        return text("desk.chat.program", locale)
    if chat.session_id is not None and chat.subject == effects.ANONYMOUS:
        return text("desk.chat.anonymous", locale)
    if chat.subject.startswith(ANONYMOUS):
        number = chat.subject.removeprefix(ANONYMOUS)[:_SHOWN_OF_ID]
        return text("desk.chat.visitor", locale, number=number)
    return chat.subject.removeprefix(IDENTIFIED)


def possible(chat: Chat, me: str) -> frozenset[str]:
    acts = {
        act
        for act, event in ACTS.items()
        if (following := after(chat.state, event, assigned=chat.assignee is not None)) and following != chat.state
    }
    if chat.state == "human" and chat.assignee != me:
        acts.add("take")
    if chat.state == "resolved":
        acts.discard("take")
    if chat.session_id is not None:
        # The customer wrote through another channel, so the assistant has nothing to answer here.
        acts.discard("hand_back")
    return frozenset(acts)


def canned(chat: Chat, me: Operator) -> tuple[CannedReply, ...]:
    known = {"operator": me.name, "ticket": chat.ticket_id or "", "organisation": registry.current().name}
    return tuple(replace(one, text=one.filled(known)) for one in replies.all())


def draft(chat: Chat) -> str:
    ticket = tickets.get(chat.ticket_id) if chat.ticket_id else None
    return ticket.draft if ticket is not None and ticket.session_id in (chat.chat_id, chat.session_id) else ""


def others(chat: Chat, staff: Iterable[Operator], me: str) -> tuple[Operator, ...]:
    """List operators a chat can be transferred to, except the current one."""
    return tuple(one for one in staff if one.login not in (chat.assignee, me))


def parsed_turn(stored: object) -> TurnAnswer | None:
    """Parse a stored turn; None if another version wrote it in an unreadable form."""
    try:
        return TurnAnswer.model_validate(stored)
    except ValidationError:
        return None


def passages(turn: TurnAnswer) -> tuple[Passage, ...]:
    """Return the evidence of a turn, each passage in full if it is stored with the turn."""
    whole = {source.snippet: source.page_content for source in turn.sources}
    return tuple(_passage(citation, whole.get(citation.excerpt, citation.excerpt)) for citation in turn.citations)


def _passage(citation: CitationPart, content: str) -> Passage:
    start = content.find(citation.excerpt)
    end = start + len(citation.excerpt)
    return Passage(citation, content[: max(start, 0)], content[max(start, 0) : end], content[end:])


def _bubble(message: Message, people: Mapping[str, str], locale: str, fate: Fate, *, superseded: bool) -> Bubble:
    suggestion = suggested_replies.stored(message)
    kept = suggestion.turn if suggestion is not None else message.body.get("turn") if message.author == "bot" else None
    turn = parsed_turn(kept) if kept is not None else None
    return Bubble(
        message=message,
        who=message.name or text(f"chats.author.{message.author}", locale),
        text=_words(message, people, locale),
        turn=turn,
        passages=passages(turn) if turn is not None else (),
        cards=turn.articles if turn is not None and turn.outcome in WITH_ARTICLES else (),
        email=_email(message, locale),
        suggestion=suggestion,
        fate=fate,
        superseded=superseded,
    )


def _email(message: Message, locale: str) -> str:
    """Return what the desk says about a message that came by e-mail; empty for any other."""
    came = message.body.get("email")
    if not isinstance(came, Mapping):
        return ""
    left_out = int(str(came.get("attachments", 0)))
    words = text("desk.chat.by_email", locale, address=str(came.get("from", "")))
    return f"{words} {text('desk.chat.email_attachments', locale, count=left_out)}" if left_out else words


def delivery(chat: Chat, locale: str) -> str:
    """Return where replies in a chat go, if the customer may not read them there; empty if they may."""
    outside, address = chat.session_id is not None, mail.address_in(chat.contact)
    if address and mail.is_on():
        minutes = policy.current().email_after_minutes
        kind = "email" if outside or not minutes else "email_later"
        return text(f"desk.chat.reply_goes.{kind}", locale, address=address, minutes=minutes)
    if not outside:
        return text("desk.chat.reply_goes.leaves", locale, contact=chat.contact) if chat.contact else ""
    if chat.contact:
        return text("desk.chat.outside", locale, contact=chat.contact)
    return text("desk.chat.unreachable", locale)


def email_fault(recorded: str, locale: str) -> str:
    """Return in words why an e-mail was not delivered, from the recorded code such as `smtp 550`."""
    kind, _, code = recorded.partition(" ")
    return text_or(recorded, f"desk.chat.email_fault.{kind}", locale, code=code)


def _words(message: Message, people: Mapping[str, str], locale: str) -> str:
    if message.text or "event" not in message.body:
        return message.text
    event, login = str(message.body.get("event", "")), str(message.body.get("operator", ""))
    fault = email_fault(str(message.body.get("fault", "")), locale)
    return text_or(event, f"chats.event.{event}", locale, name=message.name or people.get(login, login), fault=fault)

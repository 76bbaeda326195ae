"""`/chats` over HTTP, for customers: the widget and other customer clients. The gate has set the visitor's identity."""

from asyncio import to_thread
from collections.abc import AsyncIterator
from typing import Annotated, Self

from fastapi import Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field, StringConstraints, field_validator, model_validator
from starlette.responses import PlainTextResponse

from components.language.texts import LOCALES, text
from pipelines.ask.chats import presence, transcript
from pipelines.ask.chats.contract import (
    ChatPart,
    PostedAnswer,
    ThreadAnswer,
    chat_part,
    posted_answer,
    thread_answer,
)
from pipelines.ask.chats.customer_chats import Conversations
from pipelines.ask.chats.visitor_events import VISITOR_EVENT_NAMES, ChatEvents
from pipelines.ask.contract import Contact, Question, Words
from pipelines.connections import address_of
from pipelines.routes import OpenRouter, opens
from pipelines.sse import EVENT_HEADERS, described, last_number
from tenants.accounts import policy
from tenants.chats import consents, mail, sites, store
from tenants.chats.records import MAX_SEQ, Chat
from tenants.core import context

_CHATS = "/chats"
_ONE = "/chats/{chat_id}"
_BODY_BYTES, _SMALL = 50_000, 16_000
COMMENT_LIMIT = 1_000

ClientId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._~-]{1,100}$")]


class NewChat(BaseModel, extra="forbid"):
    """Chat to start."""

    locale: Annotated[str, StringConstraints(max_length=20)] | None = None


class NewMessage(BaseModel, extra="forbid"):
    """Message. Repeating a `client_id` does not store a second message. With a file, `text` may be empty."""

    text: Words = ""
    client_id: ClientId
    file_id: Annotated[str, StringConstraints(max_length=32)] | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.text and self.file_id is None:
            raise ValueError("question_empty")
        return self


class EditedMessage(BaseModel, extra="forbid"):
    """New text for a message of the customer."""

    text: Question
    client_id: ClientId
    message_id: Annotated[str, StringConstraints(max_length=32)]


class RegenerateRequest(BaseModel, extra="forbid"):
    """Answer to regenerate, by its turn."""

    turn_id: Annotated[str, StringConstraints(max_length=128)]


class BranchRequest(BaseModel, extra="forbid"):
    """Answer to continue from, by its message."""

    message_id: Annotated[str, StringConstraints(max_length=32)]


class ReadMark(BaseModel, extra="forbid"):
    """Number of the last message read."""

    seq: Annotated[int, Field(ge=0, le=MAX_SEQ)]


class TypingState(BaseModel, extra="forbid"):
    """Whether the customer is typing."""

    active: bool


class Rating(BaseModel, extra="forbid"):
    """Rating of a chat, from 1 to 5."""

    csat: Annotated[int, Field(ge=1, le=5)]
    comment: Annotated[str, Field(max_length=COMMENT_LIMIT)] = ""

    @field_validator("comment")
    @classmethod
    def _trim(cls, given: str) -> str:
        return given.replace("\x00", " ").strip()


class ContactGiven(BaseModel, extra="forbid"):
    """An e-mail address or a phone number of the customer, for replies after they have left the chat."""

    contact: Contact


class ConsentGiven(BaseModel, extra="forbid"):
    """Consent text that the customer has accepted, exactly as shown."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


def router(conversations: Conversations) -> OpenRouter:
    endpoints = OpenRouter("visit", limit=_SMALL, tags=["chats"])
    _add_stored(endpoints)

    @endpoints.post(f"{_ONE}/messages", status_code=202)
    @opens(limit=_BODY_BYTES, per_minute=60, takes_turns=True)
    async def post_message(chat_id: str, body: NewMessage) -> PostedAnswer:
        """Send a message. While the assistant is handling the chat, its answer arrives on the chat's event stream."""
        await conversations.admit_message(chat_id)
        posted = await conversations.post(chat_id, body.text, client_id=body.client_id, file_id=body.file_id)
        return await to_thread(posted_answer, posted)

    @endpoints.post(f"{_ONE}/edit", status_code=202)
    @opens(limit=_BODY_BYTES, per_minute=30, takes_turns=True)
    async def edit_message(chat_id: str, body: EditedMessage) -> PostedAnswer:
        """Edit a message, while the assistant is handling the chat. Later messages are superseded."""
        await conversations.admit_message(chat_id)
        posted = await conversations.edit(chat_id, body.message_id, body.text, body.client_id)
        return await to_thread(posted_answer, posted)

    @endpoints.post(f"{_ONE}/regenerate", status_code=202)
    @opens(per_minute=30, takes_turns=True)
    async def regenerate(chat_id: str, body: RegenerateRequest) -> ChatPart:
        """Regenerate an answer, while the assistant is handling the chat. Later messages are superseded."""
        await conversations.admit_message(chat_id)
        return await to_thread(chat_part, await conversations.regenerate(chat_id, body.turn_id))

    @endpoints.post(f"{_ONE}/branch", status_code=201)
    @opens(per_minute=10, takes_turns=True)
    async def branch(chat_id: str, body: BranchRequest) -> ChatPart:
        """Start a chat that continues after an answer of this one. The policy `chat_tools` must allow it."""
        return await to_thread(chat_part, await conversations.branch(chat_id, body.message_id))

    @endpoints.post(f"{_ONE}/stop")
    @opens(limit=_SMALL, per_minute=60, takes_turns=True)
    async def stop(chat_id: str) -> ChatPart:
        """Stop the answer in progress."""
        return await to_thread(chat_part, await conversations.stop(chat_id))

    @endpoints.post(f"{_ONE}/person")
    @opens(limit=_SMALL, per_minute=10, takes_turns=True)
    async def ask_for_person(chat_id: str) -> ChatPart:
        """Request an operator. Creates a ticket and puts the chat into the operators' queue."""
        return await to_thread(chat_part, await conversations.ask_for_person(chat_id))

    @endpoints.post(f"{_ONE}/typing", status_code=204)
    @opens(per_minute=120, takes_turns=True, notice=True)
    async def typing(chat_id: str, body: TypingState) -> None:
        """Show operators that the customer is typing."""
        await _own(chat_id)
        presence.typing(chat_id, "customer", active=body.active)

    async def reader(
        chat_id: str,
        response: Response,
        after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
        last_event_id: Annotated[
            str, Header(description="Number of the last message received, to continue after it.")
        ] = "",
    ) -> ChatEvents:
        await _own(chat_id)
        response.headers.update(EVENT_HEADERS)
        return ChatEvents(conversations, chat_id, max(after, last_number(last_event_id)))

    @endpoints.get(
        f"{_ONE}/events",
        response_class=EventSourceResponse,
        responses=described("The chat as it goes on.", VISITOR_EVENT_NAMES),
    )
    @opens(per_minute=120)
    async def follow(events: Annotated[ChatEvents, Depends(reader)]) -> AsyncIterator[ServerSentEvent]:
        """Stream the chat's events: first a `snapshot` after number `after`, then live events."""
        async for event in events.read():
            yield event

    return endpoints


def _add_stored(endpoints: OpenRouter) -> None:
    @endpoints.get(_CHATS)
    @opens(per_minute=60)
    def list_chats() -> list[ChatPart]:
        """List the caller's chats, most recently used first."""
        return [chat_part(chat) for chat in store.of_caller()]

    @endpoints.post(_CHATS, status_code=201)
    @opens(per_minute=10)
    def start_chat(body: NewChat) -> ChatPart:
        """Start a chat with the assistant."""
        site = context.current().site
        channel = "widget" if site else "api"
        return chat_part(store.start(site=site, channel=channel, locale=_locale(body.locale, site)))

    @endpoints.get(_ONE)
    @opens(per_minute=60)
    def show_chat(chat_id: str, after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0) -> ThreadAnswer:
        """Return a chat with its messages after number `after`."""
        chat = store.own(chat_id)
        return thread_answer(chat, store.messages(chat_id, after=after))

    @endpoints.get(f"{_ONE}/transcript", response_class=PlainTextResponse)
    @opens(per_minute=10)
    def show_transcript(chat_id: str) -> PlainTextResponse:
        """Export the whole chat as text."""
        chat = store.own(chat_id)
        name = f'attachment; filename="chat-{chat.chat_id}.txt"'
        return PlainTextResponse(transcript.written(chat), headers={"Content-Disposition": name})

    @endpoints.post(f"{_ONE}/seen", status_code=204)
    @opens(per_minute=120)
    def mark_seen(chat_id: str, body: ReadMark) -> None:
        """Record how far the customer has read."""
        store.own(chat_id)
        store.mark_seen(chat_id, body.seq, by_operator=False)

    @endpoints.post(f"{_ONE}/rating")
    @opens(per_minute=10)
    def rate(chat_id: str, body: Rating) -> ChatPart:
        """Rate the whole chat."""
        store.own(chat_id)
        return chat_part(store.rate(chat_id, body.csat, body.comment))

    @endpoints.post(f"{_ONE}/contact")
    @opens(per_minute=10)
    def leave_contact(chat_id: str, body: ContactGiven) -> ChatPart:
        """Leave an e-mail address or a phone number. Replies that are not read in the chat go to the address."""
        chat = store.own(chat_id)
        consents.check(chat.site)
        kind = "email" if mail.is_on() and mail.address_in(body.contact) else "other"
        return chat_part(store.leave_contact(chat_id, body.contact, text(f"chats.contact_left.{kind}", chat.locale)))

    @endpoints.post(f"{_ONE}/consent", status_code=204)
    @opens(per_minute=10)
    def consent(chat_id: str, body: ConsentGiven, request: Request) -> None:
        """Store the customer's consent with time and address."""
        chat = store.own(chat_id)
        consents.give(body.text, site=chat.site, address=address_of(request))

    @endpoints.delete(f"{_ONE}/consent", status_code=204)
    @opens(per_minute=10)
    def withdraw_consent(chat_id: str) -> None:
        """Withdraw the customer's consent for this site. They cannot write until they consent again."""
        consents.withdraw(store.own(chat_id).site)


async def _own(chat_id: str) -> Chat:
    return await to_thread(store.own, chat_id)


def _locale(wanted: str | None, site: str) -> str:
    """Return the first supported locale: the request's, the site's, the tenant's."""
    language = (wanted or "")[:2].lower()
    if language in LOCALES:
        return language
    return sites.find(site).config.locale if site else policy.current().locale

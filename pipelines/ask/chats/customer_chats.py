"""Customer side of chats: messages are stored, and the assistant answers them while it owns the chat.

The turns of a chat run one after the other, in one process at a time, which holds a claim on the chat meanwhile. If
that process dies, the next process that serves the chat answers the pending messages. Results can be stored from any
process. The widget, the API and other channels share this use case.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Literal, TypeAlias

from components.language.texts import text
from pipelines import shutdown
from pipelines.ask.chats import settling, thread
from pipelines.ask.chats.thread import PendingQuestion
from pipelines.ask.contract import AskRequest
from pipelines.ask.effects import EndedTurn
from pipelines.ask.runner import Runner
from pipelines.ask.staffing import sentence
from pipelines.ask.streams import Stream
from settings import get_settings
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.chats import branches, consents, sites, store, text_quota
from tenants.chats.records import EMPTY_BODY, Body, Chat, HandoffRequest, Message, Posted
from tenants.chats.sites import Site
from tenants.chats.tickets import Ticket
from tenants.chats.visitors import IDENTIFIED
from tenants.core import context
from tenants.core.errors import Conflict, Forbidden, NotFound, OporaError, RateLimited, trail
from tenants.storage import database
from tenants.work.locks import ChatClaim

log = logging.getLogger("opora.chats")

USER_REQUEST = "user_request"
"""Handoff reason: the customer has pressed the button for a person."""

RATE_LIMITED = "rate_limited"
"""Handoff reason: the customer has exceeded the rate limit for longer than `_LONGEST_DELAY_SECONDS`."""
_LONGEST_DELAY_SECONDS = 300

_POLL_SECONDS = 0.2

Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class LiveTurn:
    """A turn of the assistant in a chat, while it runs and for those who read it.

    `stored` says that its answer is in the chat: until then it may still come to nothing.
    """

    chat: Chat
    pending: PendingQuestion
    stream: Stream | None = None
    stored: bool = False

    def settle(self, ended: EndedTurn) -> EndedTurn | None:
        settled = settling.settle(self.chat, self.pending, ended)
        self.stored = settled is not None
        return settled


@dataclass(slots=True)
class _Channel:
    task: "asyncio.Task[None] | None" = None
    rerun: bool = False
    live: LiveTurn | None = None
    followers: "set[asyncio.Queue[LiveTurn]]" = field(default_factory=set)


class Conversations:
    """The chats of this process. Belongs to the event loop; what is stored is read and written in threads."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._channels: dict[Key, _Channel] = {}

    async def post(
        self,
        chat_id: str,
        words: str,
        *,
        client_id: str | None = None,
        file_id: str | None = None,
        body: Body = EMPTY_BODY,
    ) -> Posted:
        """Store a message in a chat of the caller; the assistant answers it if it owns the chat."""

        def store_message() -> Posted:
            own = store.own(chat_id)
            consents.check(own.site)
            reply = text("chats.file_unread", own.locale)
            return store.post(chat_id, words, client_id=client_id, file_id=file_id, body=body, unread_reply=reply)

        posted = await asyncio.to_thread(store_message)
        if posted.chat.state == "bot":
            self.resume(chat_id)
        return posted

    async def edit(self, chat_id: str, message_id: str, words: str, client_id: str | None = None) -> Posted:
        """Replace the text of a message of the customer; the conversation continues from there.

        :raises Conflict: `chat_changed`, when the message was replaced before, or a person has the chat or has replied.
        """

        def checked() -> tuple[Chat, bool]:
            chat, messages = _own_chat_and_messages(chat_id)
            own = [one for one in messages if one.author == "customer"]
            if client_id is not None and any(one.client_id == client_id for one in own):
                return chat, True
            is_own = any(one.message_id == message_id for one in own)
            if not (chat.state == "bot" and is_own and thread.can_return_to(messages, message_id)):
                raise Conflict("chat_changed", state=chat.state, version=chat.version)
            with database.reading() as session:
                text_quota.check(session, "customer")
            return chat, False

        chat, repeated = await asyncio.to_thread(checked)
        if not repeated:
            await self._stop(chat)
        return await self.post(chat_id, words, client_id=client_id, body={"replaces": message_id})

    async def regenerate(self, chat_id: str, turn_id: str) -> Chat:
        """Have an answer written anew; the conversation continues from there.

        :raises Conflict: `chat_changed`, when it was replaced before, another one is being written, or a person has the
            chat or has replied.
        """

        def ask_again() -> Chat:
            chat, messages = _own_chat_and_messages(chat_id)
            place = next((i for i, one in enumerate(messages) if one.author == "bot" and one.turn_id == turn_id), None)
            refused = Conflict("chat_changed", state=chat.state, version=chat.version)
            if place is None or not thread.can_return_to(messages, messages[place].message_id):
                raise refused
            asked = next((one for one in reversed(messages[:place]) if one.author == "customer"), None)
            if asked is None or thread.pending_questions(messages):
                raise refused
            store.ask_again(chat_id, chat.version, asked.message_id, messages[place].message_id)
            return store.get(chat_id)

        chat = await asyncio.to_thread(ask_again)
        self.resume(chat_id)
        return chat

    async def branch(self, chat_id: str, message_id: str) -> Chat:
        """Start a chat of the caller that continues after an answer of another one, and holds the chat up to there.

        :raises Forbidden: `branching_forbidden`, by the tenant's policy.
        :raises NotFound: `message_unknown`, also for a message that is not a current answer.
        """

        def start() -> Chat:
            own, messages = _own_chat_and_messages(chat_id)
            if not policy.current().has_chat_tools(identified=own.subject.startswith(IDENTIFIED)):
                raise Forbidden("branching_forbidden")
            gone = thread.superseded(messages)
            current = [one for one in messages if one.kind != "event" and one.message_id not in gone]
            place = next((i for i, one in enumerate(current) if one.message_id == message_id), None)
            if place is None or current[place].author == "customer":
                raise NotFound("message_unknown")
            return branches.start(own, current[: place + 1])

        return await asyncio.to_thread(start)

    async def stop(self, chat_id: str) -> Chat:
        await self._stop(await asyncio.to_thread(store.own, chat_id))
        return await asyncio.to_thread(store.get, chat_id)

    async def ask_for_person(self, chat_id: str) -> Chat:
        """Hand over a chat of the caller at any time. An answer that is being written is discarded."""

        def hand_over() -> Chat:
            own, messages = _own_chat_and_messages(chat_id)
            last = next((one.text for one in reversed(messages) if one.author == "customer" and one.text), "")
            return _call_person(own, last, USER_REQUEST)

        chat = await asyncio.to_thread(hand_over)
        self.drop(chat_id)
        return chat

    def drop(self, chat_id: str) -> None:
        """Stop work on an answer that will not be shown, because a person has the chat."""
        channel = self._channels.get((context.current().tenant_id, chat_id))
        if channel is not None and channel.live is not None and channel.live.stream is not None:
            channel.live.stream.stop()

    async def admit_message(self, chat_id: str) -> None:
        """Count a message, or a file, of the caller in a chat. Raises `RateLimited`."""
        if self.runner.limiter is not None:
            per_minute = get_settings().chat_messages_per_minute
            # By caller, so that a visitor cannot use up the limit of another one.
            subject = context.current().subject
            await self.runner.limiter.admit_each({f"messages of {subject} in chat {chat_id}": per_minute})

    @contextmanager
    def following(self, chat_id: str) -> Iterator["asyncio.Queue[LiveTurn]"]:
        """Provide a queue of the chat's turns as they begin, starting with the running turn."""
        channel = self._channel(chat_id)
        turns: asyncio.Queue[LiveTurn] = asyncio.Queue()
        if channel.live is not None:
            turns.put_nowait(channel.live)
        channel.followers.add(turns)
        try:
            yield turns
        finally:
            channel.followers.discard(turns)
            self._forget(chat_id)

    async def idle(self) -> None:
        while tasks := [channel.task for channel in self._channels.values() if channel.task is not None]:
            await asyncio.gather(*tasks)

    async def _stop(self, chat: Chat) -> None:
        def stop_waiting() -> None:
            for one in thread.pending_questions(store.recent(chat.chat_id)):
                store.stop(chat.chat_id, one.request_id)

        if chat.state == "bot":
            await asyncio.to_thread(stop_waiting)
            self.drop(chat.chat_id)

    def _channel(self, chat_id: str) -> _Channel:
        return self._channels.setdefault((context.current().tenant_id, chat_id), _Channel())

    def _forget(self, chat_id: str) -> None:
        key = (context.current().tenant_id, chat_id)
        channel = self._channels.get(key)
        if channel is not None and channel.task is None and not channel.followers:
            del self._channels[key]

    def resume(self, chat_id: str) -> None:
        """Answer what waits for an answer, such as a message whose answer was cut off by the end of a process."""
        channel = self._channel(chat_id)
        channel.rerun = True
        if channel.task is None:
            channel.task = asyncio.get_running_loop().create_task(self._answer_pending(chat_id, channel))

    async def _answer_pending(self, chat_id: str, channel: _Channel) -> None:
        """Answer what waits, one after the other; what could not be answered waits for its sender to try again."""
        attempted: set[str] = set()
        claim = ChatClaim(chat_id)
        try:
            while channel.rerun:
                channel.rerun = False
                chat, pending = await asyncio.to_thread(_next, chat_id, attempted)
                if pending is None:
                    continue
                channel.rerun = True
                if not await self._claimed(claim):
                    break
                # The previous owner of the claim may have answered meanwhile.
                chat, pending = await asyncio.to_thread(_next, chat_id, attempted)
                if pending is not None:
                    attempted.add(pending.request_id)
                    if await self._answer(channel, LiveTurn(chat, pending)) == "later":
                        attempted.discard(pending.request_id)
        except NotFound:
            log.info("a chat is gone while it was answered")
        except Exception as error:
            log.error("chat %s: %s", chat_id, trail(error))
        finally:
            channel.task = None
            self._forget(chat_id)
            await asyncio.to_thread(claim.release)

    async def _claimed(self, claim: ChatClaim) -> bool:
        """Wait for the claim on the chat until its owner is done. Return False on timeout."""
        until = monotonic() + self.runner.budget + _POLL_SECONDS
        while not await asyncio.to_thread(claim.take):
            if monotonic() >= until:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    async def _answer(self, channel: _Channel, live: LiveTurn) -> Literal["done", "later"]:
        chat, question = live.chat, live.pending.question
        request = AskRequest(question=question.text, session_id=chat.chat_id, locale=chat.locale)
        try:
            # The caller may be an operator or the clock; links lead to the help centre of the chat's site.
            with context.acting_as(replace(context.current(), site=chat.site)):
                live.stream = await self.runner.stream(
                    request, history=live.pending.history, grace=None, settle=partial(LiveTurn.settle, live)
                )
        except RateLimited as limited:
            return await self._delay(live, limited.retry_after)
        except OporaError as error:
            log.warning("chat %s is not answered: %s", chat.chat_id, error.code)
            await asyncio.to_thread(_apologise, live)
            return "done"
        channel.live = live
        for follower in channel.followers:
            follower.put_nowait(live)
        failed = False
        try:
            async for event in live.stream.read():
                failed = failed or (event is not None and event.name == "error")
        finally:
            channel.live = None
        if failed and not live.stored:
            await asyncio.to_thread(_apologise, live)
        return "done"

    async def _delay(self, live: LiveTurn, seconds: int) -> Literal["done", "later"]:
        """Wait until the customer's rate limit allows an answer; a long wait is a reason to call a person."""
        if seconds > _LONGEST_DELAY_SECONDS:
            await asyncio.to_thread(_call_person, live.chat, live.pending.question.text, RATE_LIMITED)
            return "done"
        words = text("chats.delayed", live.chat.locale, seconds=seconds)
        await asyncio.to_thread(store.delay, live.chat.chat_id, live.pending.request_id, words)
        await asyncio.sleep(seconds)
        return "later"


def queued_notice(chat: Chat) -> Callable[[Ticket], str]:
    """Return the text for a customer who waits for a person, by their ticket."""
    when = sentence(sites.hours(chat.site), chat.locale)
    return lambda ticket: text("chats.queued", chat.locale, ticket_id=ticket.ticket_id, when=when)


def _call_person(chat: Chat, question: str, reason: str) -> Chat:
    handed = store.hand_over(chat.chat_id, HandoffRequest(reason, question=question), notice=queued_notice(chat))
    return handed or store.get(chat.chat_id)


def _apologise(live: LiveTurn) -> None:
    """Say that a message could not be answered. A process that ends says nothing: the next one answers."""
    if shutdown.requested():
        return
    chat = live.chat
    store.answer(
        chat.chat_id,
        chat.version,
        text("outcomes.failed.default", chat.locale),
        turn_id="",
        body=EMPTY_BODY,
        failed=True,
        client_id=store.answer_id(live.pending.request_id),
    )


def _next(chat_id: str, attempted: Set[str]) -> tuple[Chat, PendingQuestion | None]:
    # Load the chat first: any later change of it discards the turn.
    chat = store.get(chat_id)
    pending = thread.pending_questions(store.recent(chat_id)) if chat.state == "bot" else ()
    return chat, next((one for one in pending if one.request_id not in attempted), None)


def _own_chat_and_messages(chat_id: str) -> tuple[Chat, tuple[Message, ...]]:
    return store.own(chat_id), store.recent(chat_id)


def file_limit(site: Site | None, rules: Policy) -> int:
    """Bytes of a file that a customer may send; 0: none.

    :param site: where the chat is; None for one without a site.
    """
    allowed = rules.chat_files and (site is None or site.config.files)
    return rules.chat_file_bytes if allowed else 0

"""Effects of a finished turn, in order: a conversation at the desk, memory, the record with its gaps, a trace.

A turn that belongs to a chat begins no other and is not remembered: the chat stores its answer, or hands over.

One check decides whether they still apply, because the client may no longer be waiting for the turn.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from threading import Event, Lock
from time import perf_counter
from typing import Literal, TypeAlias

from components.language.personal import mask
from components.language.texts import text
from components.turn import Turn
from pipelines import turn_counters
from pipelines.ask import help_links, record
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, Handoff, TurnAnswer
from pipelines.ask.staffing import staffing
from pipelines.ask.steps import Steps
from pipelines.ask.tracing.sender import Sender
from pipelines.ask.tracing.trace import Trace
from tenants.accounts import policy
from tenants.accounts.hours import Hours
from tenants.audit import store as audit
from tenants.audit.recorder import Recorder
from tenants.chats import conversation_memory, store
from tenants.chats.conversation_memory import PastTurn
from tenants.chats.records import BotReply, HandoffRequest
from tenants.chats.tickets import Ticket
from tenants.core.context import Tenant, acting_as, current
from tenants.core.errors import TryAgain, trail

log = logging.getLogger("opora.ask")

HANDED_OVER = frozenset({"high_stakes", "human_followup"})
"""Outcomes that go to a person at once. Others only offer one."""

OFFERED = Handoff(status="offered")
"""Handoff of a failed turn: the customer can ask for a person."""

ANONYMOUS = "anonymous"
_INVITING = ("high_stakes.complaint", "human_followup.callback")
"""Replies that invite the customer to write more."""
ROLE_CHANNEL: str = policy.Policy.model_fields["handoff_channel"].default
"""The default channel, which names a role. Any other value is an address to show to the visitor."""

ClientState: TypeAlias = Literal["awaited", "abandoned", "given_up"]
"""Whether a client is waiting for the answer; `given_up`: a timeout was answered instead."""


class Attempt:
    """An attempt to answer, shared by the turn and its waiting clients. Thread-safe.

    `stop` is set when no client is waiting any longer: it cancels the model calls.
    """

    def __init__(self) -> None:
        self.stop = Event()
        self._client: ClientState = "awaited"
        self._settled = False
        self._lock = Lock()

    def settle(self) -> ClientState:
        """Mark the turn as ended and return the state of its client, which can no longer change it."""
        with self._lock:
            self._settled = True
            return self._client

    def abandon(self) -> None:
        self._end("abandoned")

    def give_up(self) -> bool:
        """Record that time has run out. False: the turn has just ended, and its own answer is about to arrive."""
        return self._end("given_up")

    def _end(self, client: ClientState) -> bool:
        self.stop.set()
        with self._lock:
            if not self._settled:
                self._client = client
            return not self._settled


@dataclass(frozen=True)
class EndedTurn:
    """A finished turn with the facts that its effects need.

    :param asked_at: when the question arrived; `started` is the same moment of the performance counter.
    :param pipeline: digest of the pipeline that answered.
    """

    request: AskRequest
    turn: Turn
    steps: Steps
    asked_at: datetime
    started: float
    pipeline: str
    trace_id: str = ""
    handoff: Handoff | None = None

    @cached_property
    def answer(self) -> TurnAnswer:
        return answer_of(
            self.turn,
            trace_id=self.trace_id,
            steps=self.steps,
            latency_ms=(perf_counter() - self.started) * 1_000,
            handoff=self.handoff,
            links=help_links.of_caller(),
        )


Settle: TypeAlias = Callable[[EndedTurn], EndedTurn | None]
"""Callback that stores a turn's result in its chat. It returns None if the chat has moved on: discard the turn."""


class Effects:
    """Applies the effects of turns.

    :param sender: takes traces; None where nothing is traced.
    """

    def __init__(self, recorder: Recorder, sender: Sender | None) -> None:
        self.recorder = recorder
        self.sender = sender

    def apply(self, ended: EndedTurn, client: ClientState, settle: Settle | None = None) -> TurnAnswer:
        """Apply all effects that still apply and return the answer. A failing effect does not prevent the answer,
        except the record: an answer that is not recorded must not be shown.

        :param settle: replaces the ticket and the memory of the turn. If it fails there is no answer, because an
            answer must not be shown without being stored in its chat.
        """
        if settle is not None and client == "awaited":
            try:
                settled = settle(ended)
            except Exception:
                self.record(ended)
                raise
            ended, client = (settled, client) if settled is not None else (ended, "abandoned")
        if client == "awaited":
            if settle is None:
                ended = _hand_over(ended)
                _remember(ended)
            self.record(ended, gaps=True)
            self._trace(ended)
        elif client == "abandoned":
            # The answer has no reader, so it has no effects. The caller that gave up has recorded the turn.
            self.record(ended)
        return ended.answer

    def record(self, ended: EndedTurn, *, gaps: bool = False) -> None:
        """Record the turn in the audit. Raises `TryAgain` with the code `not_recorded` when nothing can be written."""
        turn = ended.turn
        turn_counters.observe(
            str(turn.outcome),
            turn.reason,
            perf_counter() - ended.started,
            ended.steps.milliseconds,
            [call.outcome for call in ended.steps.calls],
        )
        try:
            entry = record.entry(
                ended.request,
                turn,
                ended.answer,
                at=ended.asked_at,
                pipeline=ended.pipeline,
                gaps=gaps,
                calls=ended.steps.calls,
            )
            self.recorder.record(entry)
        except TryAgain:
            raise
        except Exception as error:
            log.critical("turn %s is not recorded: %s", turn.turn_id, trail(error))

    def _trace(self, ended: EndedTurn) -> None:
        if self.sender is None:
            return
        try:
            trace = Trace.of(
                ended.request,
                ended.steps,
                ended.answer,
                asked_at=ended.asked_at,
                pipeline=ended.pipeline,
            )
            self.sender.take(trace)
        except Exception as error:
            log.error("turn %s is not traced: %s", ended.turn.turn_id, trail(error))


def _remember(ended: EndedTurn) -> None:
    request, turn = ended.request, ended.turn
    if request.session_id is None or request.anonymous or turn.outcome is None:
        return
    question = mask(turn.standalone_question or turn.question)
    person = current().key("person")
    try:
        if audit.is_forgotten(person, request.session_id, ended.asked_at):
            return
        conversation_memory.remember(
            request.session_id, PastTurn(question, turn.outcome, turn.reply.clarification or ())
        )
        if audit.is_forgotten(person, request.session_id, ended.asked_at):
            # An erasure that began meanwhile may have passed before the turn was written.
            conversation_memory.forget(request.session_id)
    except Exception as error:
        log.error("turn %s is not remembered: %s", turn.turn_id, trail(error))


def _hand_over(ended: EndedTurn) -> EndedTurn:
    """Begin the conversation that the outcome requires; the answer shows its ticket, or that opening it failed."""
    turn = ended.turn
    if turn.outcome == "failed":
        return replace(ended, handoff=OFFERED)
    if turn.outcome not in HANDED_OVER:
        return ended
    try:
        with acting_as(_author(ended.request)):
            return _begin_conversation(ended)
    except Exception as error:
        log.error("turn %s: no ticket: %s", turn.turn_id, trail(error))
    turn, offer = _with_offer(turn)
    channel = (turn.reply.handoff or {}).get("channel") or None
    address = channel if channel != ROLE_CHANNEL else None
    turn = _add(turn, "failed" if address else "failed_plain", channel=address or "")
    return replace(ended, turn=turn, handoff=Handoff(status="failed", channel=channel, offer=offer))


def _begin_conversation(ended: EndedTurn) -> EndedTurn:
    """Put the question into the queue of the desk, with the turn as its caller reads it."""
    request, turn, settled = ended.request, ended.turn, ended
    hours = policy.current().hours

    def reply(ticket: Ticket) -> BotReply:
        nonlocal settled
        replied, handoff = with_ticket(turn, ticket, hours, contact=request.contact or "")
        settled = replace(ended, turn=replied, handoff=handoff)
        # Personal data is in the encrypted question alone.
        stored = record.redacted(settled.answer, keep_session=not request.anonymous)
        return BotReply(replied.reply.text, {"turn": json.loads(stored), "meant": mask(turn.question)})

    store.receive(
        HandoffRequest(
            reason=turn.reason or str(turn.outcome),
            question=turn.question,
            turn_id=turn.turn_id,
            draft=unverified(turn),
            confidence=ended.answer.scores.confidence,
        ),
        reply=reply,
        searchable=mask(turn.question),
        locale=turn.locale,
        session_id="" if request.anonymous else turn.session_id,
        contact=request.contact,
    )
    return settled


def _author(request: AskRequest) -> Tenant:
    caller = current()
    return replace(caller, subject=ANONYMOUS) if request.anonymous else caller


def with_ticket(turn: Turn, ticket: Ticket, hours: Hours | None, *, contact: str | None = None) -> tuple[Turn, Handoff]:
    """Add the ticket to the turn's reply. Store the ticket before you show the reply.

    :param contact: contact of the customer; None if they read the answer in their chat.
    """
    turn, offer = _with_offer(turn if contact != "" else _without_invitation(turn))
    now = staffing(hours, turn.locale)
    address = ticket.channel if ticket.channel != ROLE_CHANNEL else ""
    turn = _add(turn, _announcement(address, contact), ticket_id=ticket.ticket_id, channel=address)
    if now is not None and contact != "":
        turn = replace(turn, reply=replace(turn.reply, text=f"{turn.reply.text} {now.text}"))
    return turn, Handoff(
        status="open",
        ticket_id=ticket.ticket_id,
        channel=ticket.channel,
        created_at=ticket.created_at,
        offer=offer,
        staffing=now,
        reachable=contact != "",
    )


def _without_invitation(turn: Turn) -> Turn:
    """Return the turn without an invitation to write more, for a caller without a contact."""
    inviting = {text(f"outcomes.{key}", turn.locale) for key in _INVITING}
    if turn.reply.text not in inviting:
        return turn
    return replace(turn, reply=replace(turn.reply, text=text(f"outcomes.{turn.outcome}.default", turn.locale)))


def _announcement(address: str, contact: str | None) -> str:
    """Return the key of the text about a new ticket: how operators will answer, or that they cannot."""
    if contact:
        return "created_contact"
    kind = "created" if contact is None else "created_unreachable"
    return kind if address else f"{kind}_plain"


def unverified(turn: Turn) -> str:
    """Return the answer that was not good enough to be shown, for operators; empty if there was none."""
    draft = turn.draft
    return draft.text if draft else ""


def _with_offer(turn: Turn) -> tuple[Turn, str | None]:
    offer = (turn.reply.handoff or {}).get("offer") or None
    return (_add(turn, "offer", offer=offer) if offer else turn), offer


def _add(turn: Turn, key: str, **params: str) -> Turn:
    sentence = text(f"outcomes.handoff.{key}", turn.locale, **params)
    joined = f"{turn.reply.text}\n\n{sentence}".strip()
    return replace(turn, reply=replace(turn.reply, text=joined))

"""Answering one question: the one use case behind HTTP, the command line and evaluation."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Protocol
from uuid import uuid4

from components.language.personal import mask
from components.language.texts import LOCALES, text
from components.turn import Exchange, Filters, Reason, Reply, Turn, Verdict
from pipelines.ask import record
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, Handoff, TurnAnswer
from pipelines.ask.profiles import ProfileEngines
from pipelines.ask.steps import Steps, Watch, noting
from pipelines.ask.tracing.sender import Sender
from pipelines.ask.tracing.trace import Trace
from settings import get_settings
from tenants import conversations, feedback, handoffs, persons, policy, traces
from tenants.audit.recorder import Recorder
from tenants.context import Tenant, acting_as, current
from tenants.conversations import Said
from tenants.errors import CallerError, TryAgain, trail
from tenants.feedback import Feedback, Thumb

log = logging.getLogger("opora.ask")

HANDED_OVER = frozenset({"high_stakes", "human_followup"})
"""Outcomes that open a ticket at once. Others only show a way to ask for one."""

ANONYMOUS = "anonymous"
ROLE_CHANNEL: str = policy.Policy.model_fields["handoff_channel"].default
"""A channel that names a role. Any other is an address worth telling the visitor."""


class Engine(Protocol):
    """What carries a turn from question to outcome; called inside a tenant's context, from several threads."""

    @property
    def digest(self) -> str:
        """Names its behaviour in the records."""

    def warm_up(self) -> None:
        """Load what the first question needs."""

    def run(self, turn: Turn) -> Turn:
        """The finished turn."""

    def close(self) -> None:
        """Let go of what `warm_up` took."""


class Ask:
    """Takes a request to its answer. Thread-safe.

    :param engine: the pipeline; the one of each tenant's profile by default.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine: Engine = engine or ProfileEngines()
        self.recorder = Recorder()
        self.sender = Sender(get_settings()) if get_settings().traces_to else None

    def warm_up(self) -> None:
        """Load what the first question needs, and begin to carry records into the audit and traces to their server."""
        self.engine.warm_up()
        self.recorder.start()
        if self.sender is not None:
            self.sender.start()

    def close(self) -> None:
        """Release what the engine holds, once the last records are in the audit or safe on the disk."""
        self.recorder.close()
        if self.sender is not None:
            self.sender.close()
        self.engine.close()

    def turn(self, request: AskRequest) -> Turn:
        """The finished turn alone: nothing is handed over, so evaluation leaves no tickets behind."""
        return self.finish(begin(request))[0]

    def answer(
        self,
        request: AskRequest,
        *,
        turn_id: str | None = None,
        watch: Watch | None = None,
        history: tuple[Exchange, ...] | None = None,
    ) -> TurnAnswer:
        """Answer for the current tenant. A fault on our side is an outcome (`failed`), not an exception.

        :param turn_id: the id to use, when the caller has already told somebody; a new one otherwise.
        :param watch: told of each step of the pipeline as it ends.
        :param history: the conversation before, when the client keeps it; ours when None.
        :raises OporaError: the caller's mistake, or a reason to try again: no answer could be begun.
        """
        started, asked = perf_counter(), datetime.now(UTC)
        begun = begin(request, turn_id, history)
        turn, steps = self.finish(begun, watch)
        with acting_as(_author(request)):
            turn, handoff = _hand_over(turn)
        spent = (perf_counter() - started) * 1_000
        log.info("turn %s %s %s %.1fms", turn.turn_id, turn.outcome, turn.reason, spent)
        answer = answer_of(
            turn,
            trace_id=self._trace_id(turn),
            steps=steps.milliseconds,
            latency_ms=spent,
            handoff=handoff,
            calls=steps.calls,
        )
        _remember(request, turn)
        self._record(request, turn, answer, asked)
        self._trace(request, begun, steps, answer, asked)
        return answer

    def give_up(self, request: AskRequest, reason: Reason, *, turn_id: str, latency_ms: float) -> TurnAnswer:
        """The answer to a turn that somebody else stopped, such as a clock."""
        turn = _fail(begin(request, turn_id), reason)
        log.warning("turn %s %s %s %.1fms", turn.turn_id, turn.outcome, turn.reason, latency_ms)
        answer = answer_of(
            turn, trace_id=self._trace_id(turn), latency_ms=latency_ms, handoff=Handoff(status="offered")
        )
        # When the stopped turn ends after all, its record comes second, and the audit keeps the first.
        self._record(request, turn, answer, datetime.now(UTC) - timedelta(milliseconds=latency_ms))
        return answer

    def judge(self, turn_id: str, thumb: Thumb, reason: feedback.Reason | None = None, comment: str = "") -> Feedback:
        """Keep what the caller thinks of an answer, without personal data.

        :raises NotFound: `turn_unknown`, see `tenants.feedback.give`.
        """
        caller = current()
        person = persons.digest(caller.tenant_id, caller.subject)
        given = feedback.give(turn_id, person, thumb, reason, mask(comment))
        if self.sender is not None:
            self.sender.take(given)
        return given

    def _trace(self, request: AskRequest, begun: Turn, steps: Steps, answer: TurnAnswer, asked: datetime) -> None:
        if self.sender is None:
            return
        try:
            self.sender.take(Trace.of(request, begun, steps, answer, asked=asked, pipeline=self.engine.digest))
        except Exception as error:
            log.error("turn %s is not traced: %s", answer.turn_id, trail(error))

    def _trace_id(self, turn: Turn) -> str:
        return traces.trace_id(turn.turn_id) if self.sender is not None else ""

    def _record(self, request: AskRequest, turn: Turn, answer: TurnAnswer, asked: datetime) -> None:
        try:
            self.recorder.record(record.entry(request, turn, answer, at=asked, pipeline=self.engine.digest))
        except Exception as error:
            log.critical("turn %s is not recorded: %s", turn.turn_id, trail(error))

    def finish(self, turn: Turn, watch: Watch | None = None) -> tuple[Turn, Steps]:
        """The turn with its outcome, `failed` for a fault on our side, and the steps that it took.

        :raises OporaError: the caller's mistake, or a reason to try again.
        """
        with noting(watch) as steps:
            return self._finished(turn), steps

    def _finished(self, turn: Turn) -> Turn:
        try:
            finished = self.engine.run(turn)
        except (CallerError, TryAgain):
            raise
        except Exception as error:
            log.error("turn %s: %s", turn.turn_id, trail(error))
            return _fail(turn, "pipeline_error")
        if finished.outcome is None:
            # Haystack ends a starved graph without an exception.
            log.error("turn %s: the pipeline ended without an outcome", turn.turn_id)
            return _fail(finished, "pipeline_error")
        return finished


def begin(request: AskRequest, turn_id: str | None = None, history: tuple[Exchange, ...] | None = None) -> Turn:
    """The turn that a request starts for the current tenant."""
    return Turn(
        turn_id=turn_id or str(uuid4()),
        question=request.question,
        locale=_locale(request.locale),
        quality=request.quality,
        session_id=request.session_id or "",
        filters=request.filters.to_turn() if request.filters else Filters(),
        history=_history(request) if history is None else history,
    )


def _history(request: AskRequest) -> tuple[Exchange, ...]:
    """What was said before in the caller's conversation. Without it a question is still a question."""
    if request.session_id is None or request.anonymous:
        return ()
    try:
        said = conversations.recall(request.session_id)
    except Exception as error:
        log.error("no conversation: %s", trail(error))
        return ()
    return tuple(Exchange(one.question, one.outcome, one.options) for one in said)


def _remember(request: AskRequest, turn: Turn) -> None:
    if request.session_id is None or request.anonymous or turn.outcome is None:
        return
    asked = mask(turn.meant or turn.question)
    try:
        conversations.remember(request.session_id, Said(asked, turn.outcome, turn.reply.clarification or ()))
    except Exception as error:
        log.error("turn %s is not remembered: %s", turn.turn_id, trail(error))


def _author(request: AskRequest) -> Tenant:
    """Whose name goes on what is kept about this turn."""
    caller = current()
    return replace(caller, subject=ANONYMOUS) if request.anonymous else caller


def _locale(asked: str | None) -> str:
    """The first that we speak of: the request's, the tenant's, the installation's."""
    for candidate in (asked, policy.current().locale):
        language = (candidate or "")[:2].lower()
        if language in LOCALES:
            return language
    return get_settings().default_locale


def _fail(turn: Turn, reason: Reason) -> Turn:
    return replace(
        turn,
        outcome="failed",
        reason=reason,
        draft=None,
        best=None,
        verdict=Verdict(route="error", reasons=(reason,)),
        reply=Reply(text=text(f"outcomes.failed.{reason}", turn.locale)),
    )


def _hand_over(turn: Turn) -> tuple[Turn, Handoff | None]:
    """Open the ticket that the outcome asks for, and say which one it is, or that it could not be opened."""
    if turn.outcome == "failed":
        return turn, Handoff(status="offered")
    if turn.outcome not in HANDED_OVER:
        return turn, None
    terms = turn.reply.handoff or {}
    offer = terms.get("offer") or None
    if offer:
        turn = _add(turn, "offer", offer=offer)
    draft = turn.best or turn.draft
    try:
        ticket = handoffs.open_ticket(
            turn_id=turn.turn_id,
            reason=turn.reason or str(turn.outcome),
            question=turn.question,
            session_id="" if current().subject == ANONYMOUS else turn.session_id,
            draft=draft.text if draft else "",
        )
    except Exception as error:
        log.error("turn %s: no ticket: %s", turn.turn_id, trail(error))
        channel = terms.get("channel") or None
        told = channel if channel != ROLE_CHANNEL else None
        key = "failed" if told else "failed_plain"
        return _add(turn, key, channel=told or ""), Handoff(status="failed", channel=channel, offer=offer)
    told = ticket.channel if ticket.channel != ROLE_CHANNEL else ""
    key = "created" if told else "created_plain"
    return _add(turn, key, ticket_id=ticket.ticket_id, channel=told), Handoff(
        status="open",
        ticket_id=ticket.ticket_id,
        channel=ticket.channel,
        created_at=ticket.created_at.isoformat(),
        offer=offer,
    )


def _add(turn: Turn, key: str, **params: str) -> Turn:
    """The turn with one more sentence about the handoff at the end of its reply."""
    said = text(f"outcomes.handoff.{key}", turn.locale, **params)
    joined = f"{turn.reply.text}\n\n{said}".strip()
    return replace(turn, reply=replace(turn.reply, text=joined))

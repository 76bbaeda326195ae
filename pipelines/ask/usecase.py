"""Answering one question: the use case behind HTTP, the command line and evaluation."""

import logging
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Protocol
from uuid import uuid4

from haystack.core.errors import PipelineRuntimeError

from components.language.personal import mask
from components.language.texts import LOCALES, text
from components.turn import Exchange, Filters, Reason, Reply, Turn, Verdict
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.effects import OFFERED, Attempt, Effects, EndedTurn, Settle
from pipelines.ask.engine import NotRunnable
from pipelines.ask.help_links import of_caller
from pipelines.ask.profiles import ProfileEngines
from pipelines.ask.steps import Steps, Watch, note_fault, record_steps
from pipelines.ask.tracing.sender import Sender
from settings import get_settings
from tenants.accounts import policy
from tenants.audit.recorder import Recorder
from tenants.chats import conversation_memory
from tenants.core.context import current
from tenants.core.errors import Busy, CallerError, TryAgain, own_error, trail
from tenants.desk import feedback
from tenants.desk.feedback import Feedback, Thumb
from tenants.insight import traces
from tenants.privacy import persons

log = logging.getLogger("opora.ask")


class Engine(Protocol):
    """Takes a turn from question to outcome; called inside a tenant's context, from several threads."""

    @property
    def digest(self) -> str:
        """Identifies its behaviour in the records."""

    def warm_up(self) -> None:
        """Load what the first question needs."""

    def run(self, turn: Turn) -> Turn:
        """Return the finished turn."""

    def close(self) -> None:
        """Release what `warm_up` acquired."""


class Ask:
    """Takes a request to its answer. Thread-safe.

    :param engine: the pipeline; the one of each tenant's profile by default.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine: Engine = engine or ProfileEngines()
        self.recorder = Recorder()
        self.sender = Sender(get_settings()) if get_settings().traces_to else None
        self.effects = Effects(self.recorder, self.sender)

    def warm_up(self) -> None:
        """Load what the first question needs, and start the recorder and the trace sender."""
        self.engine.warm_up()
        self.recorder.start()
        if self.sender is not None:
            self.sender.start()

    def close(self) -> None:
        self.recorder.close()
        if self.sender is not None:
            self.sender.close()
        self.engine.close()

    def turn(self, request: AskRequest) -> Turn:
        """Return the finished turn without effects, so that evaluation leaves no tickets behind."""
        return self.finish(begin(request))[0]

    def answer(
        self,
        request: AskRequest,
        *,
        turn_id: str | None = None,
        watch: Watch | None = None,
        history: tuple[Exchange, ...] | None = None,
        attempt: Attempt | None = None,
        settle: Settle | None = None,
    ) -> TurnAnswer:
        """Answer for the current tenant. A fault on our side is an outcome (`failed`), not an exception.

        :param turn_id: the id to use when the caller has already announced one.
        :param history: earlier conversation if the client keeps it; the stored one if None.
        :param attempt: decides which effects apply, for callers that may stop waiting.
        :param settle: stores the outcome instead of a ticket and memory of the turn.
        :raises OporaError: the request is wrong, or the caller should try again; no turn was begun.
        """
        started, asked_at = perf_counter(), datetime.now(UTC)
        initial_turn = begin(request, turn_id, history)
        traces.begin(initial_turn.turn_id)
        turn, steps = self.finish(initial_turn, watch)
        client = (attempt or Attempt()).settle()
        ended = EndedTurn(request, turn, steps, asked_at, started, self.engine.digest, trace_id=self._trace_id(turn))
        answer = self.effects.apply(ended, client, settle)
        log.info("turn %s %s %s %.1fms", turn.turn_id, turn.outcome, turn.reason, answer.meta.latency_ms)
        return answer

    def rehearse(
        self, request: AskRequest, history: tuple[Exchange, ...], engine: Callable[[], Engine] | None = None
    ) -> TurnAnswer:
        """Return the answer without effects: for people at the desk, who see it before any customer does.

        :param engine: builds the engine of this question, which is closed afterwards; None: the service's own.
        """
        started = perf_counter()
        with closing(engine()) if engine is not None else nullcontext() as own:
            turn, steps = self.finish(begin(request, history=history), engine=own)
        spent = (perf_counter() - started) * 1_000
        return answer_of(turn, steps=steps, latency_ms=spent, links=of_caller())

    def give_up(
        self, request: AskRequest, reason: Reason, *, turn_id: str, latency_ms: float, settle: Settle | None = None
    ) -> TurnAnswer:
        """Record and return the answer to a turn that was stopped from outside, such as by a timeout."""
        turn = _fail(begin(request, turn_id, history=()), reason)
        log.warning("turn %s %s %s %.1fms", turn.turn_id, turn.outcome, turn.reason, latency_ms)
        ended = EndedTurn(
            request,
            turn,
            Steps(),
            datetime.now(UTC) - timedelta(milliseconds=latency_ms),
            perf_counter() - latency_ms / 1_000,
            self.engine.digest,
            trace_id=self._trace_id(turn),
            handoff=OFFERED,
        )
        ended = (settle(ended) if settle is not None else None) or ended
        self.effects.record(ended)
        return ended.answer

    def judge(self, turn_id: str, thumb: Thumb, reason: feedback.Reason | None = None, comment: str = "") -> Feedback:
        """Store the caller's verdict on an answer, without personal data.

        :raises NotFound: `turn_unknown`, see `tenants.desk.feedback.give`.
        """
        caller = current()
        person = persons.digest(caller.tenant_id, caller.subject)
        verdict = feedback.give(turn_id, person, thumb, reason, mask(comment))
        if self.sender is not None:
            self.sender.take(verdict)
        return verdict

    def _trace_id(self, turn: Turn) -> str:
        return traces.trace_id(turn.turn_id) if self.sender is not None else ""

    def finish(self, turn: Turn, watch: Watch | None = None, *, engine: Engine | None = None) -> tuple[Turn, Steps]:
        """Return the turn with its outcome, `failed` for a fault on our side, and its steps.

        :param engine: in place of this one's own.
        :raises OporaError: the caller's mistake, or a reason to try again.
        """
        with record_steps(watch) as steps:
            return self._finished(turn, engine or self.engine), steps

    def _finished(self, turn: Turn, engine: Engine) -> Turn:
        try:
            finished = engine.run(turn)
        except (CallerError, TryAgain):
            raise
        except Exception as error:
            cause = own_error(error)
            if isinstance(cause, Busy) and cause.code == "data_in_use":
                # The service itself is not ready: no answer of this turn's would say so.
                raise cause from error
            note_fault(error)
            step = error.component_name if isinstance(error, PipelineRuntimeError) else None
            told = " ".join(str(error).split()) + " " if isinstance(error, NotRunnable) else ""
            log.error("turn %s%s: %s%s", turn.turn_id, f", step {step}" if step else "", told, trail(error))
            return _fail(turn, "pipeline_error")
        if finished.outcome is None:
            # Haystack ends a graph with unmet inputs without an exception.
            log.error("turn %s: the pipeline ended without an outcome", turn.turn_id)
            return _fail(finished, "pipeline_error")
        return finished


def begin(request: AskRequest, turn_id: str | None = None, history: tuple[Exchange, ...] | None = None) -> Turn:
    return Turn(
        turn_id=turn_id or str(uuid4()),
        question=request.question,
        locale=_locale(request.locale),
        quality=request.quality,
        session_id=request.session_id or "",
        filters=request.filters.to_turn() if request.filters else Filters(),
        history=_history(request) if history is None else history,
        context=request.context or "",
    )


def _history(request: AskRequest) -> tuple[Exchange, ...]:
    """Return the caller's conversation so far; empty if it cannot be read."""
    if request.session_id is None or request.anonymous:
        return ()
    try:
        past = conversation_memory.recall(request.session_id)
    except Exception as error:
        log.error("no conversation: %s", trail(error))
        return ()
    return tuple(Exchange(exchange.question, exchange.outcome, exchange.options) for exchange in past)


def _locale(requested: str | None) -> str:
    """Return the first supported locale of the request's, the tenant's and the installation's."""
    for candidate in (requested, policy.current().locale):
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
        verdict=Verdict(route="error", reasons=(reason,)),
        reply=Reply(text=text(f"outcomes.failed.{reason}", turn.locale)),
    )

"""Runs over a tenant's own evaluation questions: by hand, and every night at the tenant's hour.

A run asks the live index as a customer would and leaves nothing else behind: no audited turn, no gap, no ticket, no
conversation. It asks one question at a time and lets customers' questions go first. It stops when half of the day's
budget for models is spent, so that customers keep the other half.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from math import inf
from threading import Event, Lock
from time import monotonic
from typing import TypeAlias
from zoneinfo import ZoneInfo

from components.turn import Turn
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.evaluation import report as reports
from pipelines.ask.evaluation.comparison import difference
from pipelines.ask.evaluation.report import AnsweredQuestion, Report
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask, begin
from tenants.access import spending
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry
from tenants.core import context, fairness
from tenants.core.context import Tenant, acting_as, working_for
from tenants.core.errors import Busy, Invalid, TimedOut, TryAgain, trail
from tenants.core.fair_semaphore import FairSemaphore
from tenants.desk import evaluation_questions, evaluation_results
from tenants.desk.evaluation_questions import EvaluationQuestion
from tenants.work import locks

log = logging.getLogger("opora.evaluation")

BUDGET_SHARE = 0.5
"""Share of the daily budget for models at which a run stops asking."""
PATIENCE_SECONDS = 5.0
"""Longest time that a question waits for a pause between customers' questions."""
_POLL_SECONDS = 0.05
LATE = timedelta(hours=3)
"""Longest delay of a nightly run, for a service that was down at the hour."""
_SAVE_SECONDS = 1.0
_RUNS, _AT_ONCE = 32, 4
"""Maximum number of active runs, and of their questions at once: runs take turns, so that slow ones delay no others."""
_TRIES = 3
_SUBJECT = "evaluation"
_SHUTTING_DOWN = "shutting_down"

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished questions and the total."""


class Evaluation:
    """Runs the evaluation of the tenant in context, and at night of every tenant. Thread-safe.

    :param runner: whose seats and time limit hold for the questions; None asks right here, as the command line does.
    """

    def __init__(self, ask: Ask, runner: Runner | None = None) -> None:
        self._closing = Event()
        self._ask = ask
        self._runner = runner
        self._pool = ThreadPoolExecutor(_RUNS, thread_name_prefix="evaluation")
        self._turns = FairSemaphore(_AT_ONCE)
        self._queued: set[str] = set()
        self._lock = Lock()

    def warm_up(self) -> None:
        """Do nothing: a run begins on demand."""

    def close(self) -> None:
        """Stop after the questions in progress; a night's run that is cut short is made again."""
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def start(self) -> None:
        """Begin a run that goes on by itself.

        :raises OporaError: `evaluation_empty`, `evaluation_running`, `evaluation_budget_spent`.
        """
        _check_can_run()
        if not self._submit(None):
            raise Busy("evaluation_running")

    def is_queued(self) -> bool:
        with self._lock:
            return context.current().tenant_id in self._queued

    def run(self, on_progress: OnProgress = lambda _done, _total: None) -> Report:
        """Ask all questions here and now."""
        _check_can_run()
        return reports.report(self._run(None, on_progress))

    def start_due(self, now: datetime | None = None) -> None:
        """Begin the runs of all tenants that had questions at their hour and have not had their run this night."""
        now = now or datetime.now(UTC)
        asked = evaluation_questions.tenants_with_questions()
        tenants = [tenant for tenant in Registry().list() if tenant.suspended_at is None and tenant.tenant_id in asked]
        dues = {tenant.tenant_id: last_due(policy.of(tenant), now) for tenant in tenants}
        tonight = {tenant_id: due for tenant_id, due in dues.items() if due is not None and now - due <= LATE}
        ran = evaluation_results.last_nights(min(tonight.values())) if tonight else {}
        for tenant_id, due in tonight.items():
            if tenant_id in ran and ran[tenant_id] >= due:
                continue
            with working_for(tenant_id, _SUBJECT):
                if evaluation_questions.had_any(due):
                    self._submit(due)

    def _submit(self, due: datetime | None) -> bool:
        """Queue a run of the tenant in context, unless one is queued or at work here.

        :param due: when a night's run was due; None for one by hand.
        """
        tenant_id = context.current().tenant_id
        with self._lock:
            if tenant_id in self._queued:
                return False
            self._queued.add(tenant_id)
        with acting_as(Tenant(tenant_id, _SUBJECT)):
            self._pool.submit(copy_context().run, self._work, tenant_id, due)
        return True

    def _work(self, tenant_id: str, due: datetime | None) -> None:
        try:
            self._run(due)
        except Busy as elsewhere:
            log.info("evaluation of %r left out: %s", tenant_id, elsewhere.code)
        except Exception as error:
            log.error("evaluation of %r: %s", tenant_id, trail(error))
        finally:
            with self._lock:
                self._queued.discard(tenant_id)

    def _run(self, due: datetime | None, on_progress: OnProgress = lambda _done, _total: None) -> str:
        """Make a run as the only one of the tenant's, of all threads and processes. Return its id."""
        name = f"~evaluation-{Tenant(context.current().tenant_id, '').key()}"
        with Busy("evaluation_running").instead_of(Busy), locks.holding(name, patience=0):
            if due is not None and context.current().tenant_id in evaluation_results.last_nights(due):
                raise Busy("evaluation_running")  # another replica was faster
            return self._run_alone(due is not None, on_progress)

    def _run_alone(self, nightly: bool, on_progress: OnProgress) -> str:
        questions = evaluation_questions.list_questions()
        run_id = evaluation_results.begin(len(questions), nightly=nightly)
        try:
            reason = self._ask_all(run_id, questions, on_progress)
        except BaseException:
            evaluation_results.stop(run_id, "interrupted")
            raise
        if reason:
            evaluation_results.stop(run_id, reason)
        return run_id

    def _ask_all(self, run_id: str, questions: tuple[EvaluationQuestion, ...], on_progress: OnProgress) -> str:
        """Ask the questions and store what came of it. Return why the run was stopped, empty if it was not."""
        answers: list[AnsweredQuestion] = []
        tokens, cost, saved = 0, 0.0, monotonic()
        for one in questions:
            if reason := self._stop_reason():
                return reason
            try:
                turn, answer = self._asked_in_turn(one)
            except TimedOut:
                answers.append(reports.failed(one))
            except TryAgain as failed:
                return "shutdown" if failed.code == _SHUTTING_DOWN else "unavailable"
            else:
                answers.append(reports.answered(one, turn, answer))
                tokens += sum(answer.meta.tokens.values())
                cost += answer.meta.cost_usd or 0.0
            on_progress(len(answers), len(questions))
            if monotonic() - saved >= _SAVE_SECONDS:
                saved = monotonic()
                evaluation_results.progress(run_id, len(answers))
        result, _ = evaluation_results.get(run_id)
        before = reports.done_before(result)
        losses = difference(reports.marks_of(before), reports.marks(answers)).losses if before else ()
        evaluation_results.finish(
            run_id,
            {**reports.figures(answers), "tokens": tokens, "cost_usd": round(cost, 6)},
            {"answers": [one.model_dump(mode="json") for one in answers]},
            {loss.share: asdict(loss) for loss in losses} or None,
        )
        return ""

    def _stop_reason(self) -> str:
        if self._closing.is_set():
            return "shutdown"
        return "budget_spent" if budget_is_used() else ""

    def _asked_in_turn(self, one: EvaluationQuestion) -> tuple[Turn, TurnAnswer]:
        """Ask a question after those of other tenants that have waited longer. Raises `TryAgain`."""
        holder = context.holder()
        if not self._turns.acquire(holder, lambda: 0.0 if self._closing.is_set() else inf):
            raise TryAgain(_SHUTTING_DOWN)
        try:
            self._let_customers_first()
            return self._asked(one)
        finally:
            self._turns.release(holder)

    def _let_customers_first(self) -> None:
        """Wait until no question of a customer computes here, for `PATIENCE_SECONDS` at most."""
        until = monotonic() + PATIENCE_SECONDS
        while fairness.has_questions() and monotonic() < until:
            self._closing.wait(_POLL_SECONDS)

    def _asked(self, one: EvaluationQuestion) -> tuple[Turn, TurnAnswer]:
        """Ask a question, again where the service was busy. Raises `TryAgain` when it stays so."""
        for attempt in range(1, _TRIES):
            try:
                return self._ask_once(one)
            except TimedOut:
                raise
            except TryAgain as failed:
                if failed.code == _SHUTTING_DOWN:
                    raise
                self._closing.wait(attempt)
        return self._ask_once(one)

    def _ask_once(self, one: EvaluationQuestion) -> tuple[Turn, TurnAnswer]:
        request = AskRequest(question=one.question, anonymous=True)

        def work() -> tuple[Turn, TurnAnswer]:
            turn, steps = self._ask.finish(begin(request, history=()))
            return turn, answer_of(turn, steps=steps)

        return self._runner.in_background(work) if self._runner is not None else work()


def last_due(rules: Policy, now: datetime) -> datetime | None:
    """Return when the last nightly run was due, by the zone of the opening hours; None where nights are off."""
    if rules.evaluation_hour is None:
        return None
    local = now.astimezone(ZoneInfo(zone_of(rules)))
    due = datetime.combine(local.date(), time(rules.evaluation_hour), tzinfo=local.tzinfo)
    return (due if due <= local else due - timedelta(days=1)).astimezone(UTC)


def zone_of(rules: Policy) -> str:
    return rules.hours.zone if rules.hours is not None else "UTC"


def budget_is_used() -> bool:
    """Return whether the tenant in context has spent `BUDGET_SHARE` of its cap for models today."""
    cap = spending.cap()
    return cap is not None and cap > 0 and spending.spent() >= BUDGET_SHARE * cap


def _check_can_run() -> None:
    if not evaluation_questions.list_questions():
        raise Invalid("evaluation_empty")
    if any(map(reports.is_running, evaluation_results.latest()[:1])):
        raise Busy("evaluation_running")
    if budget_is_used():
        raise Invalid("evaluation_budget_spent")

"""Measurement of sets, one after another, through the product's own use cases."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from evaluation import stored_runs, workspace
from evaluation.asking import ask_case, concurrently
from evaluation.cases import Case, QuestionSet, Record, Skipped
from evaluation.datasets.rows import DATA
from evaluation.metrics.reference import Reference
from evaluation.stored_runs import IndexState, Run, SetRun
from pipelines.ask.engine import YAML, AskEngine
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants.accounts import registry
from tenants.core.context import SCOPES, Tenant, acting_as, current
from tenants.knowledge import lexicon

if TYPE_CHECKING:  # it brings the libraries of models, which only a run with such evaluators should pay for
    from evaluation.metrics.yaml_evaluators import AddedEvaluators

Progress = Callable[[str, int, int], None]
"""Progress callback: the activity, the finished number, and the total (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a measurement: folder of public sets, pipeline, number of cases at once, further evaluators."""

    data: Path = DATA
    pipeline: Path = YAML
    concurrency: int = 1
    evaluators: "AddedEvaluators | None" = None


def measure(sets: Iterable[QuestionSet | Skipped], plan: Plan, progress: Progress) -> Iterator[SetRun | Skipped]:
    """Measure sets in order, each in a separate knowledge base. Call `workspace.enter` before."""
    with closing(Evaluation(plan, progress)) as evaluation:
        for question_set in sets:
            yield question_set if isinstance(question_set, Skipped) else evaluation.run(question_set)


def measure_tenant(name: str, cases: tuple[Case, ...], tenant: str, plan: Plan, progress: Progress) -> SetRun:
    """Ask a user's cases of the user's tenant, which is only read. Raises `NotFound` for an unknown tenant."""
    locale = registry.Registry().get(tenant).locale
    acting = acting_as(Tenant(tenant, subject=workspace.SUBJECT, scopes=SCOPES))
    with closing(Evaluation(plan, progress)) as evaluation, acting:
        return evaluation.ask(name, locale, cases)


def finished(names: str, measured: Sequence[SetRun | Skipped], plan: Plan) -> Run:
    moment = datetime.now(UTC)
    return Run(
        run_id=stored_runs.new_id(names, moment),
        created_at=moment,
        state=stored_runs.state(get_settings(), plan.pipeline, plan.evaluators.names if plan.evaluators else {}),
        sets=tuple(set_run for set_run in measured if isinstance(set_run, SetRun)),
        skipped=tuple(set_run.name for set_run in measured if isinstance(set_run, Skipped)),
        concurrency=plan.concurrency,
    )


class Evaluation:
    """Measures sets one after another; a knowledge base that several sets share is indexed and read once."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._ask = Ask(AskEngine(plan.pipeline))
        self._tenants: dict[str, Tenant] = {}
        self._references: dict[str, Reference] = {}
        self._is_warm = False

    def close(self) -> None:
        self._ask.close()
        if self._plan.evaluators:
            self._plan.evaluators.close()

    def run(self, question_set: QuestionSet) -> SetRun:
        with acting_as(self._tenant(question_set)):
            return self.ask(question_set.name, question_set.corpus.locale, question_set.cases)

    def ask(self, name: str, locale: str, cases: tuple[Case, ...]) -> SetRun:
        started_at = perf_counter()
        baseline = self._reference(current().tenant_id)
        reference = tuple(_by_reference(case, baseline) for case in cases)
        if not self._is_warm:
            self._ask.warm_up()
            self._is_warm = True
        ask, progress = partial(ask_case, self._ask), partial(self._progress, name)
        records = concurrently(ask, cases, self._plan.concurrency, progress)
        set_run = SetRun(name, locale, perf_counter() - started_at, index_state(), tuple(records), reference)
        evaluators = self._plan.evaluators
        if evaluators is None:
            return set_run
        progress = partial(self._progress, f"{name} · {', '.join(evaluators.names)}")
        return replace(set_run, records=evaluators.judged(records, self._plan.concurrency, progress))

    def _tenant(self, question_set: QuestionSet) -> Tenant:
        name = question_set.corpus.name
        if name not in self._tenants:
            self._tenants[name] = workspace.tenant_for(question_set.corpus, partial(self._progress, name))
        return self._tenants[name]

    def _reference(self, name: str) -> Reference:
        if name not in self._references:
            # One at a time: a reference holds every stem of its chunks in memory.
            self._references = {name: workspace.reference()}
        return self._references[name]


def index_state() -> IndexState:
    record, counts = registry.current(), lexicon.current()
    return IndexState(record.tenant_id, record.placement.generation, counts.revision, counts.chunks)


def _by_reference(case: Case, reference: Reference) -> Record:
    sentence, share = reference.best_sentence(case.question)
    ranked = reference.ranked(case.question)
    return Record(case, "answered" if sentence else "refused", ranked=ranked, text=sentence, score=share)


def timeless(set_run: SetRun) -> SetRun:
    """Return the set without times, so that two runs of the same state are identical."""
    records = tuple(replace(record, milliseconds=0.0, steps={}) for record in set_run.records)
    return replace(set_run, seconds=0.0, records=records)

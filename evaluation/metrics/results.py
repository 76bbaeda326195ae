"""Figures of a run, computed from its cases."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from evaluation.cases import Record
from evaluation.metrics.accuracy_coverage import ClaimPoint, claim_curve, graded_claims
from evaluation.metrics.built_in import (
    GROUPS,
    better_direction,
    code_marks,
    question_marks,
    reference_marks,
    right_answer,
)
from evaluation.metrics.calibration import MIN_FOR_CALIBRATION, expected_error, scores
from evaluation.metrics.intervals import (
    Booleans,
    Figure,
    Marks,
    Numbers,
    bootstrapped,
    percentile,
    ratios,
    wilson,
)
from evaluation.metrics.targets import TargetResult, judge
from evaluation.metrics.text_checks import has_facts
from evaluation.stored_runs import Run, SetRun

FACTS = "facts"
"""The requirement of `must_contain` and `must_not_contain`."""

MIN_CLAIMS = 10
"""Number of claimed answers below which `confidence` is not evaluated; an answer key has few claims by design."""


@dataclass(frozen=True, slots=True)
class SetReport:
    """Figures of one measured set. `reference` holds the same figures for the plain BM25 baseline if they apply.

    `unjudged` counts failures of added evaluators, by figure and kind of failure, `degraded` the cases in which a step
    of the pipeline failed and the turn went on without it. `claims` is the curve of accuracy
    against coverage, if there is an answer key.
    """

    name: str
    n: int
    seconds: float
    figures: Mapping[str, Figure]
    reference: Mapping[str, Figure] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Record, ...] = ()
    unjudged: Mapping[str, int] = field(default_factory=dict)
    degraded: Mapping[str, int] = field(default_factory=dict)
    claims: tuple[ClaimPoint, ...] = ()

    def scoreless(self) -> dict[str, str]:
        """Return the added evaluators without any score, by figure: the kinds of failure, most frequent first."""
        kinds: dict[str, list[str]] = {}
        for failure in self.unjudged:
            name, _, kind = failure.rpartition(": ")
            if not any(figure.partition(":")[0] == name for figure in self.figures):
                kinds.setdefault(name, []).append(kind)
        return {name: ", ".join(found) for name, found in kinds.items()}

    def targets(self) -> list[TargetResult]:
        return judge(
            self.name,
            {name: figure.value for name, figure in self.figures.items()},
            {name: figure.value for name, figure in self.reference.items()},
        )


def reported(run: Run) -> list[SetReport]:
    return [report(set_run, run.by_name()) for set_run in run.sets]


def report(set_run: SetRun, other_sets: Mapping[str, SetRun] = MappingProxyType({})) -> SetReport:
    """Compute the figures of one set.

    :param other_sets: the other sets of the run by name, for comparisons between sets.
    """
    shares = {
        name: _widened(name, figure) for name, figure in ratios(list(marks(set_run, other_sets).values())).items()
    }
    figures = {**shares, **calibration_errors(set_run.records), **_latency(set_run.records)}
    reference_figures = {**ratios(reference_marks(set_run.reference)), **calibration_errors(set_run.reference)}
    return SetReport(
        set_run.name,
        set_run.n,
        set_run.seconds,
        _ordered(figures),
        reference_figures,
        dict(Counter(record.outcome for record in set_run.records).most_common()),
        tuple(filter(missed, set_run.records)),
        unjudged(set_run.records),
        dict(Counter(step for record in set_run.records for step in record.degraded).most_common()),
        claim_curve(set_run.records),
    )


def marks(set_run: SetRun, other_sets: Mapping[str, SetRun] = MappingProxyType({})) -> dict[str, Marks]:
    clean_name, noise, _ = set_run.name.partition("+")
    clean = other_sets.get(clean_name) if noise else None
    clean_hits = {case: found["hit@5"][0] for case, found in marks(clean).items() if "hit@5" in found} if clean else {}
    found = question_marks(set_run.records, set_run.reference, clean_hits)
    if set_run.name == "codes":
        found = [{**mark, **codes} for mark, codes in zip(found, code_marks(set_run.records), strict=True)]
    return {record.case.case_id: mark for record, mark in zip(set_run.records, found, strict=True)}


def calibration_errors(records: Sequence[Record]) -> dict[str, Figure]:
    answerable, unanswerable = scores(records)
    if min(len(answerable), len(unanswerable)) < MIN_FOR_CALIBRATION:
        return {}
    values = np.array([*answerable, *unanswerable])
    labels = np.array([True] * len(answerable) + [False] * len(unanswerable))
    return {"relevance_calibration_error": _error(values, labels), **_confidence_error(records)}


def _confidence_error(records: Sequence[Record]) -> dict[str, Figure]:
    known_confidences = confidences(records)
    fewest = MIN_CLAIMS if any(record.case.key for record in records) else MIN_FOR_CALIBRATION
    if len(known_confidences) < fewest or not any(record.confidence for record in records):
        return {}
    return {"confidence_calibration_error": _error(*map(np.array, zip(*known_confidences, strict=True)))}


def _error(values: Numbers, labels: Booleans) -> Figure:
    return bootstrapped(lambda drawn: expected_error(values[drawn], labels[drawn]), len(values))


def confidences(records: Sequence[Record]) -> list[tuple[float, bool]]:
    if any(record.case.key for record in records):
        return [(claim.confidence, claim.right) for claim in graded_claims(records)]
    return [
        (record.confidence, record.case.answerable is True and right_answer(record))
        for record in records
        if record.shown and (record.case.gold_spans or record.case.answerable is False)
    ]


def _widened(name: str, figure: Figure) -> Figure:
    """Give a share of all or none its Wilson interval: resampling would give no width. A difference is no share."""
    is_share = figure.value in (0.0, 1.0) and better_direction(name) != "neither" and "_over_" not in name
    if figure.low != figure.high or not is_share:
        return figure
    return Figure(figure.value, *wilson(figure.value, figure.n), figure.n)


def _latency(records: Sequence[Record]) -> dict[str, Figure]:
    times = [record.milliseconds for record in records]
    figures = {f"latency_ms_p{share}": percentile(times, share) for share in (50, 99)}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _ordered(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    order = {name: place for place, name in enumerate(name for names in GROUPS.values() for name in names)}
    last = len(order)
    return dict(sorted(figures.items(), key=lambda item: order.get(item[0].partition(":")[0], last)))


def steps(records: Sequence[Record]) -> dict[str, tuple[float, float]]:
    """Return the median and the 95th percentile of milliseconds by pipeline step, with all passes of a turn added."""
    spent: defaultdict[str, list[float]] = defaultdict(list)
    for record in records:
        turn: defaultdict[str, float] = defaultdict(float)
        for step, milliseconds in record.steps.items():
            turn[step.partition(" #")[0]] += milliseconds
        for step, milliseconds in turn.items():
            spent[step].append(milliseconds)
    return {step: (float(np.percentile(t, 50)), float(np.percentile(t, 95))) for step, t in spent.items()}


def unjudged(records: Sequence[Record]) -> dict[str, int]:
    judged = (item for record in records for item in record.judged.items())
    return dict(Counter(f"{name}: {score}" for name, score in judged if isinstance(score, str)).most_common())


def missed(record: Record) -> str:
    """Return the unmet requirement of the case: empty if all are met, `FACTS` if its wordings decide."""
    case = record.case
    if record.outcome == "failed":
        return "other_outcome"
    if case.outcome and record.outcome != case.outcome:
        return f"{case.outcome} {case.reason}".strip()
    if case.demands and not has_facts(record):
        return FACTS
    if case.answerable is False and record.shown:
        return "refusal"
    if case.intents and record.intent not in case.intents:
        return " | ".join(case.intents)
    if case.gold_docs and not set(case.gold_docs) & set(record.ranked[:5]):
        return ", ".join(case.gold_docs)
    if case.gold_spans and not right_answer(record):
        return " | ".join(case.gold_spans)
    return ""

"""What a run leaves behind: figures per set, as JSON and as tables on the screen."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from components.language.texts import text
from evaluation.curve import CurvePoint, false_answers_at
from evaluation.intervals import Figure
from evaluation.targets import Judged, judge

SCHEMA = "evaluation.v1"
CURVE_STOPS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Over-refusal shares at which the curve is printed; the JSON holds all of it."""
FAILURES_SHOWN = 3
_LINE = 160


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that went wrong: what was wanted and what came."""

    case_id: str
    question: str
    wanted: str
    got: str


@dataclass(frozen=True, slots=True)
class SetReport:
    """One measured set. `reference` holds the same figures for the plain BM25 reference where they apply."""

    name: str
    n: int
    seconds: float
    figures: Mapping[str, Figure]
    reference: Mapping[str, Figure] = field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    reference_curve: tuple[CurvePoint, ...] = ()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    def targets(self) -> list[Judged]:
        """The demands on this set, held against what was measured."""
        return judge(
            self.name,
            {name: figure.value for name, figure in self.figures.items()},
            {name: figure.value for name, figure in self.reference.items()},
        )


@dataclass(frozen=True, slots=True)
class Skipped:
    """A set that could not be measured here, and the file that is not there."""

    name: str
    path: Path


def as_json(reports: Sequence[SetReport], skipped: Sequence[Skipped]) -> dict[str, object]:
    """The whole run: every figure with its interval, every point of the curves, every failed case."""
    return {
        "schema": SCHEMA,
        "sets": [_set_as_json(report) for report in reports],
        "skipped": [{"name": skip.name, "reason": "absent"} for skip in skipped],
        "targets": [
            {**judged.target.model_dump(exclude_none=True), "value": judged.value, "met": judged.met}
            for report in reports
            for judged in report.targets()
        ],
    }


def _set_as_json(report: SetReport) -> dict[str, object]:
    return {
        "name": report.name,
        "n": report.n,
        "seconds": round(report.seconds, 2),
        "figures": {name: asdict(figure) for name, figure in report.figures.items()},
        "reference": {name: asdict(figure) for name, figure in report.reference.items()},
        "curve": _curve_as_json(report.curve),
        "reference_curve": _curve_as_json(report.reference_curve),
        "outcomes": dict(report.outcomes),
        "failures": [asdict(failure) for failure in report.failures],
    }


def _curve_as_json(curve: Sequence[CurvePoint]) -> list[list[float | None]]:
    # Infinity is not JSON: the point that refuses everything has no threshold.
    return [[p.threshold if p.threshold != float("inf") else None, p.over_refusal, p.false_answers] for p in curve]


def print_set(console: Console, report: SetReport, locale: str) -> None:
    """The figures of one set as a table, then its outcomes and its curve."""
    table = Table(title=f"{report.name}  n={report.n}  {report.seconds:.1f} s", title_justify="left")
    for column in ("figure", "value", "interval", "n", "reference"):
        left = column == "figure"
        table.add_column(text(f"cli.evaluate.{column}", locale), justify="left" if left else "right", no_wrap=True)
    for name, figure in report.figures.items():
        theirs = report.reference.get(name)
        interval = "" if figure.low == figure.high else f"{_shown(name, figure.low)} – {_shown(name, figure.high)}"
        table.add_row(
            name,
            _shown(name, figure.value),
            interval,
            str(figure.n),
            _shown(name, theirs.value) if theirs else "",
        )
    console.print(table)
    if report.outcomes:
        counted = ", ".join(f"{name} {count}" for name, count in report.outcomes.items())
        console.print(text("cli.evaluate.outcomes", locale, counted=counted), highlight=False)
    if report.failures:
        console.print(text("cli.evaluate.failures", locale, count=len(report.failures)), highlight=False)
    for failure in report.failures[:FAILURES_SHOWN]:
        told = {name: _short(value) for name, value in asdict(failure).items()}
        console.print("  " + escape(text("cli.evaluate.failure", locale, **told)), highlight=False)
    if report.curve:
        console.print(_curve_table(report, locale))


def _curve_table(report: SetReport, locale: str) -> Table:
    table = Table(title=text("cli.evaluate.curve", locale), title_justify="left")
    for column in ("over_refusal", "false_answers", "threshold", "reference"):
        table.add_column(text(f"cli.evaluate.{column}", locale), justify="right")
    for stop in CURVE_STOPS:
        ours, theirs = false_answers_at(report.curve, stop), false_answers_at(report.reference_curve, stop)
        if ours is not None:
            table.add_row(
                f"<= {stop:.0%}",
                f"{ours.false_answers:.1%}",
                f"{ours.threshold:.3f}",
                f"{theirs.false_answers:.1%}" if theirs else "",
            )
    return table


def print_targets(console: Console, judged: Sequence[Judged], locale: str) -> None:
    """Which demands are met."""
    if not judged:
        return
    table = Table(title=text("cli.evaluate.targets", locale), title_justify="left")
    named = any(one.target.set for one in judged)
    for column in (*(["set"] if named else []), "figure", "demand", "value", "met"):
        table.add_column(text(f"cli.evaluate.{column}", locale), no_wrap=True)
    for one in judged:
        met = text(f"cli.evaluate.{'yes' if one.met else 'no'}", locale)
        demand = one.target.demand
        if one.target.over_reference is not None and one.reference is not None:
            demand = f"{demand} = {one.reference + one.target.over_reference:.3f}"
        table.add_row(
            *([one.target.set] if named else []),
            one.target.figure,
            demand,
            f"{one.value:.3f}",
            f"[green]{met}[/]" if one.met else f"[bold red]{met}[/]",
        )
    console.print(table)


def _short(words: str) -> str:
    one_line = " ".join(words.split())
    return one_line if len(one_line) <= _LINE else f"{one_line[:_LINE]}…"


def _shown(name: str, value: float) -> str:
    if "_ms_" in name:
        return f"{value:.1f}"
    return f"{value:.3f}"

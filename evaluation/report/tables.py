"""Figures as tables in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from components.language.texts import keys, percent, text, text_or
from evaluation.cases import Record
from evaluation.compare import Comparison, Difference
from evaluation.metrics.accuracy_coverage import MIN_CLAIMS, ThresholdChoice, points_at_shares
from evaluation.metrics.built_in import GATED
from evaluation.metrics.intervals import Figure
from evaluation.metrics.results import FACTS, SetReport, missed
from evaluation.metrics.targets import TargetResult

CONFIDENCE_STOPS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FAILURES_SHOWN = 3
_LINE = 160
_NAMES = frozenset({"set", "figure", "demand", "verdict"})
_WORDS = _NAMES - {"demand"}
"""Columns without numbers."""


def print_set(console: Console, report: SetReport, locale: str) -> None:
    def say(key: str, **params: str | int) -> None:
        console.print(escape(text(f"evaluation.table.{key}", locale, **params)), highlight=False)

    seconds = localised(f"{report.seconds:.1f}", locale)
    title = text("evaluation.table.title", locale, name=report.name, n=report.n, seconds=seconds)
    rows = [_figure_row(name, figure, report.reference.get(name), locale) for name, figure in report.figures.items()]
    for name, kinds in report.scoreless().items():
        none = text("evaluation.table.scoreless", locale, kinds=kinds)
        rows.append((escape(figure_name(name, locale)), none, "", "0", ""))
    console.print(_table(escape(title), ("figure", "value", "interval", "n", "reference"), rows, locale))
    say("judged")
    if report.outcomes:
        say("outcomes", counted=_counted({outcome_name(name, locale): n for name, n in report.outcomes.items()}))
    if report.unjudged:
        say("unjudged", counted=_counted(report.unjudged))
    if report.degraded:
        say("degraded", counted=failed_steps(report.degraded, locale))
    if report.failures:
        say("failures", count=len(report.failures))
    for record in report.failures[:FAILURES_SHOWN]:
        parts = {
            "question": _short(record.case.question),
            "wanted": _short(requirement(record, locale)),
            "got": _short(f"{ending(record, locale)}: {record.text}"),
        }
        console.print("  " + escape(text("evaluation.table.failure", locale, **parts)), highlight=False)
    if report.n >= MIN_CLAIMS and report.claims:
        console.print(_claims_table(report, locale))


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], locale: str, **style: Any) -> Table:  # noqa: ANN401
    """Return a table. On a narrow screen names are folded; headers and values stay whole."""
    table = Table(title=title, title_justify="left", **style)
    for column in columns:
        header = text(f"evaluation.table.{column}", locale)
        is_name = column in _NAMES
        justify, no_wrap = ("left" if is_name else "right"), (not is_name or column == "verdict")
        table.add_column(header, justify=justify, overflow="fold", no_wrap=no_wrap, min_width=len(header))  # type: ignore[arg-type]
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(*(cell if column in _WORDS else localised(cell, locale) for column, cell in cells))
    return table


def _figure_row(name: str, figure: Figure, reference: Figure | None, locale: str) -> tuple[str, ...]:
    mark = "* " if name in GATED else ""
    return (
        escape(mark + figure_name(name, locale)),
        formatted(name, figure.value),
        "" if figure.low == figure.high else f"{formatted(name, figure.low)} – {formatted(name, figure.high)}",
        str(figure.n),
        formatted(name, reference.value) if reference else "",
    )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def failed_steps(degraded: Mapping[str, int], locale: str) -> str:
    """Return the steps of a pipeline that failed, each with its number of cases."""
    return _counted({text_or(step, f"desk.task.{step}", locale): count for step, count in degraded.items()})


def _claims_table(report: SetReport, locale: str) -> Table:
    columns = ("certainty", "answer_precision", "answer_recall", "false_answer_rate")
    rows = [
        (f"{point.claimed:.0%}", *(f"{getattr(point, column):.2f}" for column in columns))
        for point in points_at_shares(report.claims)
    ]
    return _table(text("evaluation.table.claims", locale), ("claimed", *columns), rows, locale)


def print_choices(console: Console, choices: Sequence[ThresholdChoice], graded: int, locale: str) -> None:
    """Print how many answers each threshold of `confidence` would claim, and the share of right ones.

    With too few graded answers, print nothing.
    """
    if graded < MIN_CLAIMS:
        return
    rows = []
    for choice in choices:
        shares = (f"{choice.right:.1%}", f"{choice.low:.1%} – {choice.high:.1%}") if choice.claims else ("", "")
        rows.append((f"{choice.threshold:.2f}", str(choice.claims), f"{choice.share:.0%}", *shares))
    columns = ("threshold", "claims", "claimed", "right", "interval")
    console.print(_table(text("evaluation.table.choices", locale, n=graded), columns, rows, locale))


def print_choice(console: Console, choice: ThresholdChoice, wished: float, tenant: str, locale: str) -> None:
    shares = {name: percent(getattr(choice, name), locale=locale) for name in ("right", "low", "high", "share")}
    expected = percent(choice.expected, locale=locale)
    threshold, wish = localised(f"{choice.threshold:.3f}", locale), percent(wished, locale=locale)
    line = text("evaluation.chosen", locale, threshold=threshold, wished=wish, claims=choice.claims, **shares)
    if choice.expected is not None:
        line += " " + text("evaluation.expected", locale, share=expected)
    console.print(line, highlight=False)
    console.print(f"opora tenant policy {tenant} --set answer_threshold={choice.threshold:g}", highlight=False)


def print_targets(console: Console, judged: Sequence[TargetResult], locale: str) -> None:
    if not judged:
        return
    rows = [_target_row(result, locale) for result in judged]
    columns = ("set", "figure", "demand", "value", "met")
    console.print(_table(text("evaluation.table.targets", locale), columns, rows, locale))


def _target_row(result: TargetResult, locale: str) -> tuple[str, ...]:
    target, demand = result.target, result.target.demand
    if target.over_reference is not None and result.reference is not None:
        demand = f"{demand} = {target.bound(result.reference):.3f}"
    met = text(f"evaluation.table.{'yes' if result.met else 'no'}", locale)
    coloured = f"[green]{met}[/]" if result.met else f"[bold red]{met}[/]"
    return target.set, escape(figure_name(target.figure, locale)), demand, f"{result.value:.3f}", coloured


def print_comparison(console: Console, comparison: Comparison, locale: str) -> None:
    def say(key: str, style: str = "", **params: str | int) -> None:
        console.print(text(f"evaluation.table.{key}", locale, **params), style=style, highlight=False)

    for node, parameter, before, after in comparison.parameters:
        if parameter:
            console.print(escape(f"{node}.{parameter}: {before} → {after}"), highlight=False)
        else:  # only one of the pipelines has the step
            say("step_added" if after == str(True) else "step_removed", step=node)
    console.print(f"{comparison.before} → {comparison.after}", style="italic", highlight=False)
    changed = [difference for difference in comparison.differences if difference.change]
    columns = ("figure", "before", "after", "change", "interval", "n", "verdict")
    for name in dict.fromkeys(difference.set for difference in changed):
        rows = [_difference_row(difference, locale) for difference in changed if difference.set == name]
        # Without rules between the columns: on 80 characters there is no room for more.
        style = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
        console.print(_table(name, columns, rows, locale, **style))
    for name, cases in comparison.broken.items():
        say("broken", set=name, cases=", ".join(cases))
    for name, count in comparison.unpaired.items():
        say("unpaired", set=name, count=count)
    if any(difference.promised for difference in changed):
        say("promised")
    say("unchanged", count=len(comparison.differences) - len(changed))
    lost = sum(difference.verdict == "worse" for difference in comparison.differences)
    say("failed" if lost else "passed", "bold red" if lost else "green", count=lost)


def _difference_row(difference: Difference, locale: str) -> tuple[str, ...]:
    colour = {"worse": "bold red", "better": "green"}.get(difference.verdict, "dim")
    digits = _digits(difference.figure)
    return (
        escape(figure_name(difference.figure, locale)),
        formatted(difference.figure, difference.before),
        formatted(difference.figure, difference.after),
        f"{difference.change:+.{digits}f}",
        f"{difference.low:+.{digits}f} – {difference.high:+.{digits}f}",
        str(difference.n),
        f"[{colour}]{text(f'evaluation.verdict.{difference.verdict}', locale)}[/]",
    )


def figure_name(figure: str, locale: str) -> str:
    """Return the display name of a figure; that of an added evaluator is its own unless we know it."""
    name, _, part = figure.partition(":")
    key = f"evaluation.figure.{name}"
    called = text(key, locale) if key in keys(key) else name
    return f"{called}: {part}" if part else called


def outcome_name(outcome: str, locale: str) -> str:
    key = f"cli.outcome.{outcome}"
    return text(key, locale) if key in keys(key) else outcome


def ending(record: Record, locale: str) -> str:
    """Return how a turn ended, in the words of `opora ask`."""
    if record.offers_articles:
        return text("cli.turn.articles", locale)
    return outcome_name(record.outcome, locale)


def requirement(record: Record, locale: str) -> str:
    """Return the unmet requirement of a case in words; empty if all are met."""
    case, wanted = record.case, missed(record)
    if wanted == FACTS:
        wordings = (("contains", case.must_contain), ("lacks", case.must_not_contain))
        return "; ".join(
            text(f"evaluation.wanted.{key}", locale, wording=wording) for key, those in wordings for wording in those
        )
    key = f"evaluation.wanted.{wanted}"
    return text(key, locale) if key in keys(key) else outcome_name(wanted, locale)


def formatted(name: str, value: float) -> str:
    return f"{value:.{_digits(name)}f}"


def localised(number: str, locale: str) -> str:
    return number.replace(".", ",").replace("%", "\u00a0%") if locale == "ru" else number


def _digits(name: str) -> int:
    return 1 if "_ms_" in name or name == "tokens" else 3


def _short(words: str) -> str:
    one_line = " ".join(words.split())
    return one_line if len(one_line) <= _LINE else f"{one_line[:_LINE]}…"

"""Figures as tables in the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from components.language.texts import keys, text
from evaluation.compare import Comparison, Difference
from evaluation.metrics.claims import MIN_CLAIMS, ThresholdChoice, points_at_shares
from evaluation.metrics.results import SetReport
from evaluation.metrics.targets import TargetResult
from evaluation.metrics.thresholds import Advice, Rate, false_answers_at
from evaluation.runs import Run

CURVE_STOPS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Over-refusal shares at which the curve is printed; the JSON holds all of it."""
CONFIDENCE_STOPS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FAILURES_SHOWN = 3
_LINE = 160


def print_set(console: Console, report: SetReport, locale: str) -> None:
    """The figures of one set as a table, then its outcomes and its curve."""
    title = text("evaluation.table.title", locale, name=report.name, n=report.n, seconds=f"{report.seconds:.1f}")
    table = Table(title=escape(title), title_justify="left")
    for column in ("figure", "value", "interval", "n", "reference"):
        _add_column(table, column, locale, justify="left" if column == "figure" else "right")
    for name, figure in report.figures.items():
        reference = report.reference.get(name)
        interval = (
            "" if figure.low == figure.high else f"{formatted(name, figure.low)} – {formatted(name, figure.high)}"
        )
        table.add_row(
            escape(figure_name(name, locale)),
            formatted(name, figure.value),
            interval,
            str(figure.n),
            formatted(name, reference.value) if reference else "",
        )
    for name, kinds in report.scoreless().items():
        table.add_row(
            escape(figure_name(name, locale)), text("evaluation.table.scoreless", locale, kinds=kinds), "", "0", ""
        )
    console.print(table)
    if report.outcomes:
        counted = ", ".join(f"{outcome_name(name, locale)} {count}" for name, count in report.outcomes.items())
        console.print(text("evaluation.table.outcomes", locale, counted=counted), highlight=False)
    if report.unjudged:
        counted = ", ".join(f"{reason} {count}" for reason, count in report.unjudged.items())
        console.print(text("evaluation.table.unjudged", locale, counted=counted), highlight=False)
    if report.failures:
        console.print(text("evaluation.table.failures", locale, count=len(report.failures)), highlight=False)
    for failure in report.failures[:FAILURES_SHOWN]:
        shortened = {name: _short(value) for name, value in asdict(failure).items()}
        console.print("  " + escape(text("evaluation.table.failure", locale, **shortened)), highlight=False)
    if report.n < MIN_CLAIMS:
        return
    if report.claims:
        console.print(_claims_table(report, locale))
    elif report.curve:
        console.print(_curve_table(report, locale))


def _add_column(table: Table, column: str, locale: str, justify: JustifyMethod = "left") -> None:
    """Add a column. On a narrow screen names are folded; headers and values stay whole."""
    named = column in ("set", "figure", "demand")
    header = text(f"evaluation.table.{column}", locale)
    table.add_column(header, justify=justify, overflow="fold", no_wrap=not named, min_width=len(header))


def _curve_table(report: SetReport, locale: str) -> Table:
    table = Table(title=text("evaluation.table.curve", locale), title_justify="left")
    for column in ("over_refusal", "false_answers", "threshold", "reference"):
        table.add_column(text(f"evaluation.table.{column}", locale), justify="right")
    for stop in CURVE_STOPS:
        our_point, reference_point = (
            false_answers_at(report.curve, stop),
            false_answers_at(report.reference_curve, stop),
        )
        if our_point is not None:
            table.add_row(
                f"<= {stop:.0%}",
                f"{our_point.false_answers:.1%}",
                f"{our_point.threshold:.3f}",
                f"{reference_point.false_answers:.1%}" if reference_point else "",
            )
    return table


def _claims_table(report: SetReport, locale: str) -> Table:
    table = Table(title=text("evaluation.table.claims", locale), title_justify="left")
    for column in ("claimed", "certainty", "answer_precision", "answer_recall", "false_answer_rate"):
        table.add_column(text(f"evaluation.table.{column}", locale), justify="right")
    for point in points_at_shares(report.claims):
        table.add_row(
            f"{point.claimed:.0%}",
            f"{point.certainty:.2f}",
            f"{point.answer_precision:.2f}",
            f"{point.answer_recall:.2f}",
            f"{point.false_answer_rate:.2f}",
        )
    return table


def print_choices(console: Console, choices: Sequence[ThresholdChoice], graded: int, locale: str) -> None:
    """Print the answers that thresholds of `confidence` would claim, and the share of right ones, if that says much."""
    if graded < MIN_CLAIMS:
        return
    table = Table(title=text("evaluation.table.choices", locale, n=graded), title_justify="left")
    for column in ("threshold", "claims", "claimed", "right", "interval"):
        table.add_column(text(f"evaluation.table.{column}", locale), justify="right")
    for choice in choices:
        shares = (f"{choice.right:.1%}", f"{choice.low:.1%} – {choice.high:.1%}") if choice.claims else ("", "")
        table.add_row(f"{choice.threshold:.2f}", str(choice.claims), f"{choice.share:.0%}", *shares)
    console.print(table)


def print_choice(console: Console, choice: ThresholdChoice, wished: float, tenant: str, locale: str) -> None:
    """Print the chosen threshold, the expected result, and the command that sets it."""
    expected = "" if choice.expected is None else text("evaluation.expected", locale, share=f"{choice.expected:.0%}")
    line = text(
        "evaluation.chosen",
        locale,
        threshold=f"{choice.threshold:.3f}",
        wished=f"{wished:.0%}",
        right=f"{choice.right:.0%}",
        low=f"{choice.low:.0%}",
        high=f"{choice.high:.0%}",
        claims=choice.claims,
        share=f"{choice.share:.0%}",
    )
    console.print(f"{line} {expected}".strip(), highlight=False)
    console.print(f"opora tenant policy {tenant} --set answer_threshold={choice.threshold:g}", highlight=False)


def print_targets(console: Console, judged: Sequence[TargetResult], locale: str) -> None:
    """Print which targets are met."""
    if not judged:
        return
    table = Table(title=text("evaluation.table.targets", locale), title_justify="left")
    named = any(judged_target.target.set for judged_target in judged)
    for column in (*(["set"] if named else []), "figure", "demand", "value", "met"):
        _add_column(table, column, locale)
    for judged_target in judged:
        met = text(f"evaluation.table.{'yes' if judged_target.met else 'no'}", locale)
        demand = judged_target.target.demand
        if judged_target.target.over_reference is not None and judged_target.reference is not None:
            demand = f"{demand} = {judged_target.reference + judged_target.target.over_reference:.3f}"
        table.add_row(
            *([judged_target.target.set] if named else []),
            escape(figure_name(judged_target.target.figure, locale)),
            demand,
            f"{judged_target.value:.3f}",
            f"[green]{met}[/]" if judged_target.met else f"[bold red]{met}[/]",
        )
    console.print(table)


def _short(words: str) -> str:
    one_line = " ".join(words.split())
    return one_line if len(one_line) <= _LINE else f"{one_line[:_LINE]}…"


def formatted(name: str, value: float) -> str:
    """Format a figure by its kind."""
    return f"{value:.{_digits(name)}f}"


def _digits(name: str) -> int:
    return 1 if "_ms_" in name or name == "tokens" else 3


def print_comparison(console: Console, comparison: Comparison, locale: str) -> None:
    """Print the changes between two runs, set by set; unchanged figures are only counted."""
    for node, parameter, before, after in comparison.parameters:
        changed_part = f"{node}.{parameter}: {before} → {after}" if parameter else _node_change(node, after, locale)
        console.print(escape(changed_part), highlight=False)
    console.print(f"{comparison.before} → {comparison.after}", style="italic", highlight=False)
    changed = [difference for difference in comparison.differences if difference.change]
    for name in dict.fromkeys(difference.set for difference in changed):
        # One table for each set, without rules between the columns: on 80 characters there is no room for more.
        table = Table(title=name, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for column in ("figure", "before", "after", "change", "interval", "n", "verdict"):
            _add_column(table, column, locale, justify="left" if column in ("figure", "verdict") else "right")
        for difference in changed:
            if difference.set == name:
                table.add_row(*_difference_row(difference, locale))
        console.print(table)
    for name, cases in comparison.broken.items():
        console.print(text("evaluation.table.broken", locale, set=name, cases=", ".join(cases)), highlight=False)
    for name, count in comparison.unpaired.items():
        console.print(text("evaluation.table.unpaired", locale, set=name, count=count), highlight=False)
    if any(difference.promised for difference in changed):
        console.print(text("evaluation.table.promised", locale), highlight=False)
    same = len(comparison.differences) - len(changed)
    console.print(text("evaluation.table.unchanged", locale, count=same), highlight=False)
    lost = sum(difference.verdict == "worse" for difference in comparison.differences)
    verdict = text("evaluation.table.failed" if lost else "evaluation.table.passed", locale, count=lost)
    console.print(verdict, style="bold red" if lost else "green", highlight=False)


def _node_change(node: str, after: str, locale: str) -> str:
    """Say that only one of the pipelines has the step."""
    return text(f"evaluation.table.step_{'added' if after == str(True) else 'removed'}", locale, step=node)


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


def print_advice(console: Console, run: Run, advice_by_set: Mapping[str, Sequence[Advice]], locale: str) -> None:
    """Print the cost of relevance gate thresholds, set by set."""
    for name, lines in advice_by_set.items():
        if not lines:
            console.print(text("evaluation.table.no_advice", locale, set=name), style="dim", highlight=False)
            continue
        title = text("evaluation.table.advice", locale, set=name, now=threshold_now(run))
        table = Table(title=title, title_justify="left")
        for column in ("allowed", "threshold", "expected_over_refusal", "expected_false_answers"):
            table.add_column(text(f"evaluation.table.{column}", locale), justify="right")
        for advice in lines:
            table.add_row(
                f"<= {advice.allowed:.0%}",
                f"{advice.threshold:.3f}",
                as_text(advice.over_refusal),
                as_text(advice.false_answers),
            )
        console.print(table)


def figure_name(figure: str, locale: str) -> str:
    """Return the display name of a figure; that of an added evaluator is its own unless we know it."""
    name, _, part = figure.partition(":")
    key = f"evaluation.figure.{name}"
    called = text(key, locale) if key in keys(key) else name
    return f"{called}: {part}" if part else called


def outcome_name(outcome: str, locale: str) -> str:
    """Return the display name of an outcome."""
    key = f"cli.outcome.{outcome}"
    return text(key, locale) if key in keys(key) else outcome


def as_text(rate: Rate) -> str:
    """Format a rate with its interval and its number of cases."""
    return f"{rate.value:.1%} ({rate.low:.1%} – {rate.high:.1%}, n = {rate.n})"


def threshold_now(run: Run) -> str:
    """Return the threshold of the relevance gate in the run."""
    return str(run.state.parameters.get("evaluate_retrieval", {}).get("threshold", "?"))

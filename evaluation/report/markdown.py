"""The headline figures as a Markdown table, for a README."""

from collections.abc import Sequence

from components.language.texts import text
from evaluation.metrics.results import SetReport
from evaluation.metrics.targets import headlines
from evaluation.report.tables import figure_name, formatted

_COLUMNS = ("set", "figure", "value", "interval", "n", "reference")


def as_markdown(reports: Sequence[SetReport], locale: str) -> str:
    """Return a row for each headline figure that was measured: value, interval, n, and plain BM25's value."""
    columns = [text(f"evaluation.table.{column}", locale) for column in _COLUMNS]
    rows = [columns, ["---"] * len(columns)]
    by_name = {report.name: report for report in reports}
    for line in headlines():
        report = by_name.get(line.set)
        figure = report.figures.get(line.figure) if report else None
        if report is None or figure is None:
            continue
        reference_figure = report.reference.get(line.figure)
        rows.append(
            [
                line.set,
                figure_name(line.figure, locale),
                formatted(line.figure, figure.value),
                f"{formatted(line.figure, figure.low)} – {formatted(line.figure, figure.high)}",
                str(figure.n),
                formatted(line.figure, reference_figure.value) if reference_figure else "",
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)

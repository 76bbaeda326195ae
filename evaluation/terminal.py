"""Shared parts of the evaluation commands: texts, options, and the display of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale
from tenants.core.errors import Invalid
from ui.cli.terminal import print_json, terminal_console, texts

if TYPE_CHECKING:
    from evaluation.runs import Run


message = texts("evaluation")


RunArgument = Annotated[str, typer.Argument(help=message("help.which_run"))]
Data = Annotated[Path | None, typer.Option(help=message("help.data"))]
Pipeline = Annotated[Path | None, typer.Option(help=message("help.pipeline"), exists=True, dir_okay=False)]
Concurrency = Annotated[int, typer.Option(help=message("help.concurrency"), min=1, max=64)]
Html = Annotated[Path | None, typer.Option("--html", help=message("help.html"), dir_okay=False)]
Junit = Annotated[Path | None, typer.Option("--junit", help=message("help.junit"), dir_okay=False)]


def checked_pipeline(pipeline: Path | None) -> dict[str, Path]:
    """Return the pipeline to measure, after a check if it is not our own. Raises `Invalid`: `pipeline_faulty`."""
    if pipeline is None:
        return {}
    from pipelines.lint import lint_file

    if findings := lint_file(pipeline):
        raise Invalid("pipeline_faulty", path=str(pipeline), fault=findings[0].describe(terminal_locale()))
    return {"pipeline": pipeline}


def load_run(which: str) -> "Run":
    """Load a stored run by its name. Raises `NotFound` or `Invalid`."""
    from evaluation.runs import Runs
    from settings import get_settings

    return Runs(get_settings().data_dir).load(which)


def show_run(run: "Run", html: Path | None, junit: Path | None, locale: str, as_json: bool) -> None:
    """Print a run as tables or JSON, and write its pages."""
    from evaluation.metrics.results import reported
    from evaluation.report import data, tables
    from evaluation.report.junit import as_junit
    from evaluation.report.page import as_page

    reports = reported(run)
    if html:
        html.write_text(as_page(run, reports, locale), encoding="utf-8")
    if junit:
        junit.write_text(as_junit(run, reports), encoding="utf-8")
    if as_json:
        print_json(data.as_json(run, reports))
        return
    console = terminal_console()
    for report in reports:
        tables.print_set(console, report, locale)
    tables.print_targets(console, [judged for report in reports for judged in report.targets()], locale)
    typer.echo(message("kept", run=run.run_id), err=True)

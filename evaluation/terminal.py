"""Shared parts of the evaluation commands: texts, options, and the display of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale
from tenants.core.errors import Busy, Invalid
from ui.cli.terminal import acting_for, print_json, terminal_console, texts

if TYPE_CHECKING:
    from evaluation.runs import Run


message = texts("evaluation")


RunArgument = Annotated[str, typer.Argument(help=message("help.which_run"))]
Data = Annotated[Path | None, typer.Option(help=message("help.data"))]
Pipeline = Annotated[Path | None, typer.Option(help=message("help.pipeline"), exists=True, dir_okay=False)]
Concurrency = Annotated[int, typer.Option(help=message("help.concurrency"), min=1, max=64)]
Html = Annotated[Path | None, typer.Option("--html", help=message("help.html"), dir_okay=False)]
Junit = Annotated[Path | None, typer.Option("--junit", help=message("help.junit"), dir_okay=False)]


def chosen_pipeline(pipeline: Path | None, tenant: str = "") -> Path:
    """Return the pipeline to measure, and name it on standard error.

    :param pipeline: the file that the command names; it is checked.
    :param tenant: whose customers' pipeline is measured if no file is named; the installation's if empty.
    :raises Invalid: `pipeline_faulty`.
    """
    from pipelines.ask import profiles
    from pipelines.lint import lint_file
    from settings import get_settings

    if pipeline is None and tenant:
        with acting_for(tenant):
            pipeline = profiles.path_of(profiles.chosen())
    elif pipeline is None:
        pipeline = profiles.path_of(get_settings().profile)
    elif findings := lint_file(pipeline):
        raise Invalid("pipeline_faulty", path=str(pipeline), fault=findings[0].describe(terminal_locale()))
    typer.echo(message("asked", path=str(pipeline)), err=True)
    return pipeline


def check_data_is_free() -> None:
    """Raise `Busy` with the code `data_in_service` while a service runs: the baseline reads the whole index."""
    from settings import get_settings
    from tenants.work import claims

    if (running := claims.service_place(get_settings())) is not None:
        raise Busy("data_in_service", address=running.browsed_at)


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
    if html is None:
        typer.echo(message("page_hint"), err=True)

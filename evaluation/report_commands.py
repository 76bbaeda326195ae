"""`opora evaluate report`, `compare`, `calibrate`, `runs` and `phoenix`: what stored runs say."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale
from evaluation.commands import message
from evaluation.compare import compare as compare_runs
from evaluation.datasets.thumbs import graded_thumbs
from evaluation.metrics.accuracy_coverage import choose_threshold, graded_claims, threshold_choice
from evaluation.metrics.results import reported
from evaluation.report import data, tables
from evaluation.report.haystack import write_csv
from evaluation.report.junit import as_junit
from evaluation.report.page import as_page
from evaluation.report.phoenix import publish
from evaluation.stored_runs import Run, Runs
from settings import get_settings
from tenants.core.errors import Invalid
from ui.cli.terminal import (
    DEFAULT_TENANT,
    Json,
    LocaleOption,
    TenantOption,
    acting_for,
    checked_locale,
    print_json,
    progress_bar,
    shown_by,
    terminal_console,
)

RunArgument = Annotated[str, typer.Argument(help=message("help.which_run"))]
Html = Annotated[Path | None, typer.Option("--html", help=message("help.html"), dir_okay=False)]
Junit = Annotated[Path | None, typer.Option("--junit", help=message("help.junit"), dir_okay=False)]


def load_run(which: str) -> Run:
    return Runs(get_settings().data_dir).load(which)


def show_run(run: Run, html: Path | None, junit: Path | None, locale: str, as_json: bool) -> None:
    locale = checked_locale(locale) or terminal_locale()
    reports = reported(run)
    if html:
        html.write_text(as_page(run, reports, locale), encoding="utf-8")
    if junit:
        junit.write_text(as_junit(run, reports, locale), encoding="utf-8")
    for written in filter(None, (html, junit)):
        typer.echo(message("written", path=str(written)), err=True)
    if as_json:
        print_json(data.as_json(run, reports))
        return
    console = terminal_console()
    for one in reports:
        tables.print_set(console, one, locale)
    tables.print_targets(console, [judged for one in reports for judged in one.targets()], locale)
    typer.echo(message("kept", run=run.run_id), err=True)
    if html is None:
        typer.echo(message("page_hint"), err=True)


def report(
    which: RunArgument = "latest",
    html: Html = None,
    junit: Junit = None,
    csv: Annotated[Path | None, typer.Option("--csv", help=message("help.csv"), file_okay=False)] = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    run = load_run(which)
    if csv:
        write_csv(run, csv)
    show_run(run, html, junit, locale, as_json)


def compare(
    before: Annotated[str, typer.Argument(help=message("help.before"))],
    after: Annotated[str, typer.Argument(help=message("help.after"))] = "latest",
    as_json: Json = False,
) -> None:
    comparison = compare_runs(load_run(before), load_run(after))
    if as_json:
        print_json({**asdict(comparison), "regressed": comparison.regressed})
    else:
        tables.print_comparison(terminal_console(), comparison, terminal_locale())
    if comparison.regressed:
        raise typer.Exit(1)


def calibrate(
    which: Annotated[str, typer.Argument(help=message("help.calibrated_run"))] = "",
    tenant: TenantOption = DEFAULT_TENANT,
    right: Annotated[float, typer.Option(help=message("help.right"), min=0.01, max=1.0)] = 0.7,
    as_json: Json = False,
) -> None:
    """Find the threshold of `confidence` above which answers are right as often as wished."""
    if which:
        claims = [claim for measured in load_run(which).sets for claim in graded_claims(measured.records)]
    else:
        with acting_for(tenant):
            claims = graded_thumbs()
    chosen = choose_threshold(claims, right)
    choices = [threshold_choice(claims, stop) for stop in tables.CONFIDENCE_STOPS]
    if as_json:
        print_json(
            {
                "graded": len(claims),
                "chosen": asdict(chosen) if chosen else None,
                "thresholds": [asdict(choice) for choice in choices],
            }
        )
        return
    console, locale = terminal_console(), terminal_locale()
    tables.print_choices(console, choices, len(claims), locale)
    if chosen:
        tables.print_choice(console, chosen, right, tenant, locale)
    else:
        console.print(message("no_threshold", n=len(claims), right=f"{right:.0%}"), highlight=False)


def runs(as_json: Json = False) -> None:
    run_ids = Runs(get_settings().data_dir).ids()
    if as_json:
        print_json(run_ids)
        return
    for run_id in run_ids:
        typer.echo(run_id)
    if not run_ids:
        typer.echo(message("no_runs"), err=True)


def phoenix(which: RunArgument = "latest", as_json: Json = False) -> None:
    if not get_settings().phoenix_url:
        raise Invalid("phoenix_unset")
    run = load_run(which)
    with progress_bar("") as progress:
        published = publish(run, shown_by(progress))
    if as_json:
        print_json([asdict(one) for one in published])
        return
    for one in published:
        typer.echo(message("published", name=one.name, runs=one.runs, traced=one.traced, url=one.url))

"""`opora evaluate`: measure, compare, and show earlier measurements."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale
from evaluation.answer_commands import answers, calibrate
from evaluation.datasets import DATA_SETS
from evaluation.terminal import (
    Concurrency,
    Data,
    Html,
    Junit,
    Pipeline,
    RunArgument,
    check_data_is_free,
    chosen_pipeline,
    load_run,
    message,
    show_run,
)
from tenants.core.errors import Invalid
from ui.cli.terminal import (
    DEFAULT_TENANT,
    Group,
    Json,
    LocaleOption,
    TenantOption,
    checked_locale,
    print_json,
    progress_bar,
    shown_by,
    terminal_console,
)

if TYPE_CHECKING:
    from typer._click.core import Context

    from evaluation.cases import Case, Skipped
    from evaluation.evaluators.added import AddedEvaluators
    from evaluation.run import Plan, Progress
    from evaluation.runs import SetRun

_MEASURE = "run"


class MeasureByDefault(Group):
    """`opora evaluate fixture` measures: what is no command of the group is the name of something to measure."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "--help"}:
            args = [_MEASURE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=MeasureByDefault, no_args_is_help=True, add_completion=False)

app.command("answers", help=message("help.answers"))(answers)
app.command("calibrate", help=message("help.calibrate"))(calibrate)


@app.command(_MEASURE, help=message("help.run", names=", ".join(DATA_SETS)))
def run(
    names: Annotated[list[str], typer.Argument(help=message("help.names"))],
    tenant: TenantOption = DEFAULT_TENANT,
    data: Data = None,
    pipeline: Pipeline = None,
    concurrency: Concurrency = 1,
    evaluators: Annotated[
        Path | None, typer.Option(help=message("help.evaluators"), exists=True, dir_okay=False)
    ] = None,
    tag: Annotated[list[str], typer.Option(help=message("help.tag"))] = [],  # noqa: B006 - Typer copies defaults
    sealed: Annotated[bool, typer.Option("--sealed", help=message("help.sealed"))] = False,
    html: Html = None,
    junit: Junit = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    """Measure data sets, or the cases of a file against a tenant; keep the run; say which targets are met."""
    from evaluation.run import Plan, finished
    from evaluation.runs import Runs
    from evaluation.summaries import keep
    from settings import get_settings

    chosen_runs = Runs(get_settings().data_dir.resolve())
    data_folder = {"data": data} if data else {}
    of_sets = all(name in DATA_SETS for name in names)
    files = {} if of_sets else {Path(name).stem: _chosen_cases(name, tag, sealed) for name in names}
    if files:
        check_data_is_free()
    added = _added(evaluators)
    asked = chosen_pipeline(pipeline, "" if of_sets else tenant)
    plan = Plan(**data_folder, pipeline=asked, concurrency=concurrency, evaluators=added)
    with progress_bar("") as progress:
        if of_sets:
            measured = _measure_sets(names, plan, shown_by(progress))
        else:
            measured = _measure_files(files, tenant, plan, shown_by(progress))
    finished_run = finished(" ".join(names), measured, plan)
    chosen_runs.save(finished_run)
    if not of_sets:
        keep(finished_run, tenant)
    show_run(finished_run, html, junit, checked_locale(locale) or terminal_locale(), as_json)


def _added(path: Path | None) -> "AddedEvaluators | None":
    """Return the evaluators of a file. Raises `Invalid`: `evaluators_unreadable`, `evaluators_empty`."""
    if path is None:
        return None
    from evaluation.evaluators.added import read_evaluators

    return read_evaluators(path)


def _measure_sets(names: list[str], plan: "Plan", progress: "Progress") -> "list[SetRun | Skipped]":
    from evaluation import workspace
    from evaluation.cases import Skipped
    from evaluation.run import measure
    from settings import get_settings

    workspace.enter(get_settings().data_dir / "evaluation")
    measured = []
    for result in measure(names, plan, progress):
        measured.append(result)
        if isinstance(result, Skipped):
            typer.echo(message("skipped", name=result.name, path=str(result.path)), err=True)
    return measured


def _chosen_cases(name: str, tags: list[str], sealed: bool) -> "tuple[Case, ...]":
    """Return the cases of a file that have one of the tags. Raises `Invalid`: `dataset_unknown`, `cases_empty`."""
    from evaluation.datasets.casefile import read_cases

    path = Path(name)
    if not path.is_file():
        raise Invalid("dataset_unknown", name=name, names=", ".join(DATA_SETS))
    chosen = tuple(
        case for case in read_cases(path) if (sealed or not case.sealed) and (not tags or set(tags) & set(case.tags))
    )
    if not chosen:
        raise Invalid("cases_empty", path=name)
    return chosen


def _measure_files(
    files: "Mapping[str, tuple[Case, ...]]", tenant: str, plan: "Plan", progress: "Progress"
) -> "list[SetRun | Skipped]":
    from evaluation.run import measure_tenant

    return [measure_tenant(name, cases, tenant, plan, progress) for name, cases in files.items()]


@app.command("report", help=message("help.report"))
def report(
    which: RunArgument = "latest",
    html: Html = None,
    junit: Junit = None,
    csv: Annotated[Path | None, typer.Option("--csv", help=message("help.csv"), file_okay=False)] = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    """Show a saved run again."""
    kept = load_run(which)
    if csv:
        from evaluation.report.haystack import write_csv

        write_csv(kept, csv)
    show_run(kept, html, junit, checked_locale(locale) or terminal_locale(), as_json)


@app.command("compare", help=message("help.compare"))
def compare(
    before: Annotated[str, typer.Argument(help=message("help.before"))],
    after: Annotated[str, typer.Argument(help=message("help.after"))] = "latest",
    as_json: Json = False,
) -> None:
    """Compare two saved runs. Exit code 1 at a significant loss."""
    from evaluation.compare import compare as compare_runs
    from evaluation.report import data, tables

    comparison = compare_runs(load_run(before), load_run(after))
    if as_json:
        print_json(data.comparison_as_json(comparison))
    else:
        tables.print_comparison(terminal_console(), comparison, terminal_locale())
    if comparison.regressed:
        raise typer.Exit(1)


@app.command("runs", help=message("help.runs"))
def runs(as_json: Json = False) -> None:
    """List the saved runs, oldest first."""
    from evaluation.runs import Runs
    from settings import get_settings

    run_ids = Runs(get_settings().data_dir).ids()
    if as_json:
        print_json(run_ids)
        return
    for run_id in run_ids:
        typer.echo(run_id)
    if not run_ids:
        typer.echo(message("no_runs"), err=True)


@app.command("phoenix", help=message("help.phoenix"))
def phoenix(which: RunArgument = "latest", as_json: Json = False) -> None:
    """Send a saved run to Phoenix: its sets as data sets, the run as an experiment on each."""
    from dataclasses import asdict

    from evaluation.report.phoenix import publish
    from settings import get_settings

    if not get_settings().phoenix_url:
        raise Invalid("phoenix_unset")
    run_ = load_run(which)
    with progress_bar("") as progress:
        published = publish(run_, shown_by(progress))
    if as_json:
        print_json([asdict(one) for one in published])
        return
    for one in published:
        typer.echo(message("published", name=one.name, runs=one.runs, traced=one.traced, url=one.url))


@app.command("figures", help=message("help.figures"))
def figures(which: Annotated[list[str], typer.Argument(help=message("help.which_runs"))]) -> None:
    """Print the headline figures as a Markdown table."""
    from evaluation.metrics.results import reported
    from evaluation.report.markdown import as_markdown

    reports = [one for name in which for one in reported(load_run(name))]
    typer.echo(as_markdown(reports, terminal_locale()))

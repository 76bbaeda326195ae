"""`opora evaluate`: measure, compare, advise, and read again what was measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.terminal import terminal_locale
from components.language.texts import text
from pipelines.terminal import (
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
from tenants.errors import Invalid

if TYPE_CHECKING:
    from typer._click.core import Context

    from evaluation.cases import Skipped
    from evaluation.metrics.judging import Judge
    from evaluation.run import Plan, Progress
    from evaluation.runs import Run, SetRun

DATA_SETS = (
    "fixture",
    "codes",
    "dialogues",
    "vkcloud",
    "xquad",
    "intune",
    "techqa",
    "wixqa",
    "clinc150",
    "nlupp",
    "blns",
    "prompt_injection",
    "terra",
    "wice",
)
_MEASURE = "run"


def say(key: str, **params: str | int | float) -> str:
    """A text of these commands in the terminal's language."""
    return text(f"evaluation.{key}", terminal_locale(), **params)


class MeasureByDefault(Group):
    """`opora evaluate fixture` measures: what is no command of the group is the name of something to measure."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "--help"}:
            args = [_MEASURE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=MeasureByDefault, help=say("help.group", names=", ".join(DATA_SETS)), no_args_is_help=True)

RunArgument = Annotated[str, typer.Argument(help=say("help.which_run"))]
Page = Annotated[Path | None, typer.Option("--html", help=say("help.html"), dir_okay=False)]
Junit = Annotated[Path | None, typer.Option("--junit", help=say("help.junit"), dir_okay=False)]


@app.command(_MEASURE, help=say("help.run", names=", ".join(DATA_SETS)))
def run(
    names: Annotated[list[str], typer.Argument(help=say("help.names"))],
    tenant: TenantOption = DEFAULT_TENANT,
    data: Annotated[Path | None, typer.Option(help=say("help.data"))] = None,
    pipeline: Annotated[Path | None, typer.Option(help=say("help.pipeline"), exists=True, dir_okay=False)] = None,
    concurrency: Annotated[int, typer.Option(help=say("help.concurrency"), min=1, max=64)] = 1,
    judge: Annotated[Path | None, typer.Option(help=say("help.judge"), exists=True, dir_okay=False)] = None,
    tag: Annotated[list[str], typer.Option(help=say("help.tag"))] = [],  # noqa: B006 - Typer copies defaults
    sealed: Annotated[bool, typer.Option("--sealed", help=say("help.sealed"))] = False,
    html: Page = None,
    junit: Junit = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    """Measure data sets, or the cases of a file against a tenant; keep the run; say which targets are met."""
    from evaluation.run import Plan, finished
    from evaluation.runs import Runs
    from settings import get_settings

    kept = Runs(get_settings().data_dir.resolve())
    data_folder = {"data": data} if data else {}
    plan = Plan(**data_folder, **_checked(pipeline), concurrency=concurrency, judge=_judge(judge))
    with progress_bar("") as progress:
        if all(name in DATA_SETS for name in names):
            measured = _measure_sets(names, plan, shown_by(progress))
        else:
            measured = _measure_files(names, tenant, tag, sealed, plan, shown_by(progress))
    done = finished(" ".join(names), measured, plan)
    kept.save(done)
    _show(done, html, junit, checked_locale(locale) or terminal_locale(), as_json)


def _checked(pipeline: Path | None) -> dict[str, Path]:
    """The pipeline to measure, if it is not our own. Raises `Invalid`: `pipeline_faulty`."""
    if pipeline is None:
        return {}
    from pipelines.lint import lint_file

    if findings := lint_file(pipeline):
        raise Invalid("pipeline_faulty", path=str(pipeline), fault=findings[0].told(terminal_locale()))
    return {"pipeline": pipeline}


def _judge(path: Path | None) -> "Judge | None":
    """Who judges, if anybody. Raises `Invalid`: `judge_unreadable`, `judge_empty`."""
    if path is None:
        return None
    from evaluation.metrics.judging import read_judge

    return read_judge(path)


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
            typer.echo(say("skipped", name=result.name, path=str(result.path)), err=True)
    return measured


def _measure_files(
    names: list[str], tenant: str, tags: list[str], sealed: bool, plan: "Plan", progress: "Progress"
) -> "list[SetRun | Skipped]":
    from evaluation.datasets.casefile import read_cases
    from evaluation.run import measure_tenant

    measured: list[SetRun | Skipped] = []
    for name in names:
        path = Path(name)
        if not path.is_file():
            raise Invalid("dataset_unknown", name=name, names=", ".join(DATA_SETS))
        chosen = tuple(
            case
            for case in read_cases(path)
            if (sealed or not case.sealed) and (not tags or set(tags) & set(case.tags))
        )
        if not chosen:
            raise Invalid("cases_empty", path=name)
        measured.append(measure_tenant(path.stem, chosen, tenant, plan, progress))
    return measured


@app.command("report", help=say("help.report"))
def report(
    which: RunArgument = "latest",
    html: Page = None,
    junit: Junit = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    """Show a kept run again."""
    _show(_load(which), html, junit, checked_locale(locale) or terminal_locale(), as_json)


def _show(done: "Run", html: Path | None, junit: Path | None, locale: str, as_json: bool) -> None:
    from evaluation.metrics.results import reported
    from evaluation.report import data, tables
    from evaluation.report.junit import as_junit
    from evaluation.report.page import as_page

    reports = reported(done)
    if html:
        html.write_text(as_page(done, reports, locale), encoding="utf-8")
    if junit:
        junit.write_text(as_junit(done, reports), encoding="utf-8")
    if as_json:
        print_json(data.as_json(done, reports))
        return
    console = terminal_console()
    for one in reports:
        tables.print_set(console, one, locale)
    tables.print_targets(console, [judged for one in reports for judged in one.targets()], locale)
    typer.echo(say("kept", run=done.run_id), err=True)


@app.command("compare", help=say("help.compare"))
def compare(
    before: Annotated[str, typer.Argument(help=say("help.before"))],
    after: Annotated[str, typer.Argument(help=say("help.after"))] = "latest",
    as_json: Json = False,
) -> None:
    """Hold two kept runs against each other. Exit code 1 when something that counts became worse."""
    from evaluation.compare import compare as compare_runs
    from evaluation.report import data, tables

    comparison = compare_runs(_load(before), _load(after))
    if as_json:
        print_json(data.comparison_as_json(comparison))
    else:
        tables.print_comparison(terminal_console(), comparison, terminal_locale())
    if comparison.regressed:
        raise typer.Exit(1)


@app.command("advise", help=say("help.advise"))
def advise(which: RunArgument = "latest", as_json: Json = False) -> None:
    """Say which threshold costs what."""
    from dataclasses import asdict

    from evaluation.metrics.thresholds import advise as advise_on
    from evaluation.report import tables

    done = _load(which)
    found = {one.name: advise_on(one.records) for one in done.sets}
    if as_json:
        print_json({name: [asdict(line) for line in lines] for name, lines in found.items()})
        return
    tables.print_advice(terminal_console(), done, found, terminal_locale())


@app.command("runs", help=say("help.runs"))
def runs(as_json: Json = False) -> None:
    """List the kept runs, oldest first."""
    from evaluation.runs import Runs
    from settings import get_settings

    found = Runs(get_settings().data_dir).ids()
    if as_json:
        print_json(found)
        return
    for run_id in found:
        typer.echo(run_id)
    if not found:
        typer.echo(say("no_runs"), err=True)


@app.command("phoenix", help=say("help.phoenix"))
def phoenix(which: RunArgument = "latest", as_json: Json = False) -> None:
    """Bring a kept run into Phoenix, its sets as data sets and itself as an experiment on each."""
    from dataclasses import asdict

    from evaluation.report.phoenix import publish
    from settings import get_settings

    if not get_settings().phoenix_url:
        raise Invalid("phoenix_unset")
    done = _load(which)
    with progress_bar("") as progress:
        published = publish(done, shown_by(progress))
    if as_json:
        print_json([asdict(one) for one in published])
        return
    for one in published:
        typer.echo(say("published", name=one.name, runs=one.runs, traced=one.traced, url=one.url))


@app.command("figures", help=say("help.figures"))
def figures(which: Annotated[list[str], typer.Argument(help=say("help.which_runs"))]) -> None:
    """Print the headline figures as a Markdown table."""
    from evaluation.metrics.results import reported
    from evaluation.report.markdown import as_markdown

    reports = [one for name in which for one in reported(_load(name))]
    typer.echo(as_markdown(reports, terminal_locale()))


def _load(which: str) -> "Run":
    from evaluation.runs import Runs
    from settings import get_settings

    return Runs(get_settings().data_dir).load(which)

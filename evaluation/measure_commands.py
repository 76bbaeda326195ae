"""`opora evaluate` and `opora evaluate answers`: measure, keep the run, and show it."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from evaluation import workspace
from evaluation.cases import Case, QuestionSet, Skipped
from evaluation.commands import message
from evaluation.datasets import DATA_SETS
from evaluation.datasets.answer_keys import over_corpus, over_own_passages, read_key, vkcloud_answers
from evaluation.datasets.casefile import read_cases
from evaluation.datasets.catalogue import chosen_sets
from evaluation.datasets.rows import DATA, MissingData
from evaluation.measurement import Evaluation, Plan, finished, measure, measure_tenant
from evaluation.metrics.accuracy_coverage import points_at_shares
from evaluation.metrics.results import SetReport, reported
from evaluation.report.answers import write_answers
from evaluation.report_commands import Html, Junit, show_run
from evaluation.stored_runs import Run, Runs, SetRun
from evaluation.workspace import SUBJECT
from pipelines import lint
from pipelines.ask import profiles
from settings import get_settings
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, Invalid
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from tenants.storage.tables import JsonObject
from tenants.work import locks
from ui.cli.terminal import DEFAULT_TENANT, Json, LocaleOption, TenantOption, acting_for, progress_bar, shown_by

_SUMMARY_SCHEMA = "evaluation.summary.v1"

Data = Annotated[Path | None, typer.Option(help=message("help.data"))]
Pipeline = Annotated[Path | None, typer.Option(help=message("help.pipeline"), exists=True, dir_okay=False)]
Concurrency = Annotated[int, typer.Option(help=message("help.concurrency"), min=1, max=64)]
Evaluators = Annotated[Path | None, typer.Option(help=message("help.evaluators"), exists=True, dir_okay=False)]


def run(
    names: Annotated[list[str], typer.Argument(help=message("help.names"))],
    tenant: TenantOption = DEFAULT_TENANT,
    data: Data = None,
    pipeline: Pipeline = None,
    concurrency: Concurrency = 1,
    evaluators: Evaluators = None,
    tag: Annotated[list[str], typer.Option(help=message("help.tag"))] = [],  # noqa: B006 - Typer copies defaults
    sealed: Annotated[bool, typer.Option("--sealed", help=message("help.sealed"))] = False,
    html: Html = None,
    junit: Junit = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    """Measure data sets, or the cases of a file against a tenant; keep the run; say which targets are met."""
    of_sets = all(name in DATA_SETS for name in names)
    runs = Runs(get_settings().data_dir.resolve())
    files = {} if of_sets else {Path(name).stem: _chosen_cases(name, tag, sealed) for name in names}
    if files:
        _check_data_is_free()
    added = None
    if evaluators:
        from evaluation.metrics.yaml_evaluators import read_evaluators  # brings the libraries of models

        added = read_evaluators(evaluators)
    plan = Plan(data or DATA, _chosen_pipeline(pipeline, "" if of_sets else tenant), concurrency, added)
    with progress_bar("") as progress:
        shown = shown_by(progress)
        if of_sets:
            workspace.enter(get_settings().data_dir / "evaluation")
            sets = (one for name in names for one in chosen_sets(name, plan.data))
            measured = [_announced(result) for result in measure(sets, plan, shown)]
        else:
            measured = [measure_tenant(name, cases, tenant, plan, shown) for name, cases in files.items()]
    finished_run = _kept(runs, " ".join(names), measured, plan, "" if of_sets else tenant)
    show_run(finished_run, html, junit, locale, as_json)


def answers(
    key: Annotated[Path | None, typer.Option(help=message("help.key"), dir_okay=False)] = None,
    corpus: Annotated[Path | None, typer.Option(help=message("help.corpus"), exists=True)] = None,
    tenant: Annotated[str, typer.Option(help=message("help.key_tenant"))] = "",
    data: Data = None,
    pipeline: Pipeline = None,
    concurrency: Concurrency = 1,
    html: Html = None,
    jsonl: Annotated[Path | None, typer.Option("--jsonl", help=message("help.jsonl"), dir_okay=False)] = None,
    locale: LocaleOption = "",
    as_json: Json = False,
) -> None:
    if key is None and (corpus or tenant):
        raise Invalid("key_missing")
    runs = Runs(get_settings().data_dir.resolve())
    try:
        cases = read_key(key) if key else ()
        if tenant:
            _check_data_is_free()
        plan = Plan(data or DATA, _chosen_pipeline(pipeline, tenant), concurrency)
        with progress_bar("") as progress:
            if key and tenant:
                measured = measure_tenant(key.stem, cases, tenant, plan, shown_by(progress))
            else:
                workspace.enter(get_settings().data_dir / "evaluation")
                with closing(Evaluation(plan, shown_by(progress))) as evaluation:
                    measured = evaluation.run(_keyed_set(key, cases, corpus, plan.data))
    except MissingData as error:
        raise Invalid("key_absent", path=str(error.path)) from error
    finished_run = _kept(runs, measured.name, [measured], plan, tenant)
    if jsonl:
        write_answers(jsonl, measured.records)
    show_run(finished_run, html, None, locale, as_json)


def _kept(runs: Runs, names: str, measured: Sequence[SetRun | Skipped], plan: Plan, tenant: str) -> Run:
    run = finished(names, measured, plan)
    runs.save(run)
    if tenant:
        _keep_summary(run, tenant)
    return run


def _announced(result: SetRun | Skipped) -> SetRun | Skipped:
    if isinstance(result, Skipped):
        typer.echo(message("skipped", name=result.name, path=str(result.path)), err=True)
    return result


def _chosen_cases(name: str, tags: list[str], sealed: bool) -> tuple[Case, ...]:
    """Return the cases of a file that have one of the tags. Raises `Invalid`: `dataset_unknown`, `cases_empty`."""
    path = Path(name)
    if not path.is_file():
        raise Invalid("dataset_unknown", name=name, names=", ".join(DATA_SETS))
    chosen = tuple(
        case for case in read_cases(path) if (sealed or not case.sealed) and (not tags or set(tags) & set(case.tags))
    )
    if not chosen:
        raise Invalid("cases_empty", path=name)
    return chosen


def _keyed_set(key: Path | None, cases: tuple[Case, ...], corpus: Path | None, data: Path) -> QuestionSet:
    """Return the questions of a key over their own passages or a corpus; VK Cloud's without a key."""
    if key is None:
        return vkcloud_answers(data)[0]
    over = partial(over_corpus, corpus=corpus) if corpus else over_own_passages
    return over(f"{key.parent.name}-{key.stem}", cases)


def _chosen_pipeline(pipeline: Path | None, tenant: str) -> Path:
    """Return the pipeline to measure, and name it on standard error.

    :param pipeline: the file that the command names; it is checked.
    :param tenant: whose customers' pipeline is measured if no file is named; the installation's if empty.
    :raises Invalid: `pipeline_faulty`.
    """
    if pipeline is None and tenant:
        with acting_for(tenant):
            pipeline = profiles.path_of(profiles.chosen())
    elif pipeline is None:
        pipeline = profiles.path_of(get_settings().profile)
    else:
        lint.check(pipeline)
    typer.echo(message("asked", path=str(pipeline)), err=True)
    return pipeline


def _check_data_is_free() -> None:
    """Raise `Busy` with the code `data_in_service` while a service runs: the baseline reads the whole index."""
    if (running := locks.service_place(get_settings())) is not None:
        raise Busy("data_in_service", address=running.browsed_at)


def _keep_summary(run: Run, tenant_id: str) -> None:
    with acting_as(Tenant(tenant_id, SUBJECT)):
        evaluations.add(EvaluationRun(run.run_id, run.created_at, _summary(run)))


def _summary(run: Run) -> JsonObject:
    """Summarise a run: figures with intervals, targets, the curve of an answer key; no questions or answers."""
    reports = reported(run)
    return {
        "schema": _SUMMARY_SCHEMA,
        "pipeline": run.state.pipeline,
        "code": run.state.code,
        "sets": [_set_summary(report) for report in reports],
        "targets": [
            {
                "set": judged.target.set,
                "figure": judged.target.figure,
                "demand": judged.target.demand,
                "value": judged.value,
                "met": judged.met,
            }
            for report in reports
            for judged in report.targets()
        ],
    }


def _set_summary(report: SetReport) -> JsonObject:
    return {
        "name": report.name,
        "n": report.n,
        "figures": {name: asdict(one) for name, one in report.figures.items() if isfinite(one.value)},
        "outcomes": dict(report.outcomes),
        "claims": [asdict(point) for point in dict.fromkeys(points_at_shares(report.claims))],
    }

"""`opora evaluate answers` and `calibrate`: grade answers by an answer key, and choose a confidence threshold."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale
from evaluation.terminal import (
    Concurrency,
    Data,
    Html,
    Pipeline,
    check_data_is_free,
    chosen_pipeline,
    load_run,
    message,
    show_run,
)
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

if TYPE_CHECKING:
    from evaluation.cases import Case
    from evaluation.metrics.claims import GradedClaim
    from evaluation.run import Plan, Progress
    from evaluation.runs import Run, SetRun


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
    """Score answers by an answer key; keep the run."""
    from evaluation.datasets.answer_keys import read_key
    from evaluation.datasets.rows import MissingData
    from evaluation.report.answers import write_answers
    from evaluation.run import Plan, finished
    from evaluation.runs import Runs
    from evaluation.summaries import keep
    from settings import get_settings

    if key is None and (corpus or tenant):
        raise Invalid("key_missing")
    runs = Runs(get_settings().data_dir.resolve())
    try:
        cases = read_key(key) if key else ()
        if tenant:
            check_data_is_free()
        asked = chosen_pipeline(pipeline, tenant)
        plan = Plan(**({"data": data} if data else {}), pipeline=asked, concurrency=concurrency, evaluators=None)
        with progress_bar("") as progress:
            measured = _measure(key, cases, corpus, tenant, plan, shown_by(progress))
    except MissingData as error:
        raise Invalid("key_absent", path=str(error.path)) from error
    run = finished(measured.name, [measured], plan)
    runs.save(run)
    if tenant:
        keep(run, tenant)
    if jsonl:
        write_answers(jsonl, measured.records)
    show_run(run, html, None, checked_locale(locale) or terminal_locale(), as_json)


def _measure(
    key: Path | None,
    cases: "tuple[Case, ...]",
    corpus: Path | None,
    tenant: str,
    plan: "Plan",
    progress: "Progress",
) -> "SetRun":
    from evaluation import workspace
    from evaluation.datasets.answer_keys import over_corpus, over_own_passages, vkcloud_answers
    from evaluation.run import measure_set, measure_tenant
    from settings import get_settings

    if key and tenant:
        return measure_tenant(key.stem, cases, tenant, plan, progress)
    workspace.enter(get_settings().data_dir / "evaluation")
    if key is None:
        (chosen,) = vkcloud_answers(plan.data)
    elif corpus is None:
        chosen = over_own_passages(f"{key.parent.name}-{key.stem}", cases)
    else:
        chosen = over_corpus(f"{key.parent.name}-{key.stem}", cases, corpus)
    return measure_set(chosen, plan, progress)


def calibrate(
    which: Annotated[str, typer.Argument(help=message("help.calibrated_run"))] = "",
    tenant: TenantOption = DEFAULT_TENANT,
    graded: Annotated[Path | None, typer.Option(help=message("help.graded"), exists=True, dir_okay=False)] = None,
    right: Annotated[float, typer.Option(help=message("help.right"), min=0.01, max=1.0)] = 0.7,
    as_json: Json = False,
) -> None:
    """Find the threshold of `confidence` above which answers are right as often as wished."""
    from dataclasses import asdict

    from evaluation.metrics.claims import choose_threshold, threshold_choice
    from evaluation.metrics.thresholds import advise
    from evaluation.report import tables

    run = load_run(which) if which else None
    graded_answers = [*_claims_of_run(run), *_claims_of_file(graded)] if run or graded else _claims_of_thumbs(tenant)
    chosen = choose_threshold(graded_answers, right)
    table = [threshold_choice(graded_answers, stop) for stop in tables.CONFIDENCE_STOPS]
    advice = {one.name: advise(one.records) for one in run.sets} if run else {}
    if as_json:
        print_json(
            {
                "graded": len(graded_answers),
                "chosen": asdict(chosen) if chosen else None,
                "thresholds": [asdict(one) for one in table],
                "advice": {name: [asdict(line) for line in lines] for name, lines in advice.items()},
            }
        )
        return
    console, locale = terminal_console(), terminal_locale()
    if graded_answers:
        tables.print_choices(console, table, len(graded_answers), locale)
    if chosen:
        tables.print_choice(console, chosen, right, tenant, locale)
    else:
        console.print(message("no_threshold", n=len(graded_answers), right=f"{right:.0%}"), highlight=False)
    if run:
        tables.print_advice(console, run, {name: lines for name, lines in advice.items() if lines}, locale)


def _claims_of_run(run: "Run | None") -> "list[GradedClaim]":
    from evaluation.metrics.claims import graded_claims

    return [one for measured in run.sets for one in graded_claims(measured.records)] if run else []


def _claims_of_file(path: Path | None) -> "list[GradedClaim]":
    """Read graded answers from a file: lines with `confidence` and `right`, as `--jsonl` writes them."""
    from evaluation.metrics.claims import GradedClaim

    claims = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path else (), 1):
        try:
            row = json.loads(line)
            if row.get("claimed", True) and isinstance(row["right"], bool):
                claims.append(GradedClaim(float(row["confidence"]), row["right"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Invalid("graded_unreadable", path=str(path), line=number) from error
    return claims


def _claims_of_thumbs(tenant: str) -> "list[GradedClaim]":
    """Return the tenant's answers graded by users and editors: right if every thumb is up."""
    from evaluation.datasets.thumbs import graded_thumbs

    with acting_for(tenant):
        return graded_thumbs()

"""`opora evaluation`: a tenant's own questions, and the runs over them."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from pipelines.ask.evaluation import questions, report
from pipelines.ask.evaluation.questions import Upload
from pipelines.ask.evaluation.report import AnsweredQuestion, Report
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.usecase import Ask
from tenants.core.errors import NotFound
from tenants.desk import evaluation_questions, evaluation_results
from tenants.desk.evaluation_questions import MOST
from tenants.desk.evaluation_results import EvaluationResult
from ui.cli.terminal import CommandGroup, progress_bar

group = CommandGroup("evaluation.own")
message = group.message


def _print_upload(uploaded: Upload) -> None:
    stored = uploaded.stored
    typer.echo(message("stored", added=stored.added, changed=stored.changed, unchanged=stored.unchanged))
    for fault in uploaded.faults:
        reason = text(f"service.{fault.code}.detail", terminal_locale(), limit=MOST, article=fault.article)
        line = "fault" if fault.question else "fault_unnamed"
        typer.echo(message(line, row=fault.row, question=fault.question, reason=reason), err=True)


@group.tenant_command(
    "import", show=_print_upload, form=questions.upload_as_json, fails=lambda uploaded: uploaded.faults
)
def evaluation_import(
    file: Annotated[Path, typer.Argument(help=message("help.file"), exists=True, dir_okay=False)],
) -> Upload:
    return questions.upload(file.name, file.read_bytes())


def _print_questions(found: list[dict[str, object]]) -> None:
    for one in found:
        typer.echo(f"{one['question_id']}  {one['question']}")


@group.tenant_command("list", show=_print_questions)
def evaluation_list() -> list[dict[str, object]]:
    return [questions.as_json(one) for one in evaluation_questions.list_questions()]


@group.tenant_command("remove")
def evaluation_remove(
    question_ids: Annotated[list[str], typer.Argument(help=message("help.question_id"))],
) -> None:
    evaluation_questions.remove(question_ids)
    typer.echo(message("removed", count=len(set(question_ids))))


@group.tenant_command(
    "run",
    show=lambda shown: _print_report(shown, shown.failing),
    form=report.as_json,
    fails=lambda shown: shown.result.loss,
)
def evaluation_run() -> Report:
    with progress_bar(message("asking")) as update:
        ask = Ask()
        with closing(ask.engine):
            return Evaluation(ask).run(lambda done, total: update(completed=done, total=total))


def _print_results(results: Sequence[EvaluationResult]) -> None:
    for one in results:
        typer.echo(_line(one))
    if not results:
        typer.echo(message("none"), err=True)


@group.tenant_command(
    "results", show=_print_results, form=lambda results: [report.result_as_json(one) for one in results]
)
def evaluation_runs() -> Sequence[EvaluationResult]:
    return evaluation_results.latest()


def _print_all(shown: Report) -> None:
    _print_report(shown, (*shown.failing, *(answer for answer in shown.answers if answer.is_right)))


@group.tenant_command("show", show=_print_all, form=report.as_json)
def evaluation_show(run_id: Annotated[str, typer.Argument(help=message("help.run_id"))] = "") -> Report:
    chosen = run_id or next((one.run_id for one in evaluation_results.latest() if one.state == "done"), "")
    if not chosen:
        raise NotFound("evaluation_unknown")
    return report.report(chosen)


def _print_report(shown: Report, listed: Sequence[AnsweredQuestion]) -> None:
    typer.echo(_line(shown.result))
    for one in listed:
        mark = text(f"desk.insight.evaluation.mark.{one.mark}", terminal_locale())
        typer.echo(message("failing", mark=mark, question=one.question))
    if shown.difference is not None:
        worse, better = len(shown.difference.worse), len(shown.difference.better)
        typer.echo(message("changed", worse=worse, better=better))
        for loss in shown.difference.losses:
            shares = {"before": f"{loss.before:.0%}", "now": f"{loss.now:.0%}"}
            typer.echo(text(f"desk.insight.evaluation.loss_of.{loss.share}", terminal_locale(), **shares))


def _line(result: EvaluationResult) -> str:
    at = f"{result.created_at:%Y-%m-%d %H:%M}"
    if result.state != "done":
        counts = {"done": result.done, "total": result.total}
        return message("stopped", at=at, state=result.state, reason=result.reason, run_id=result.run_id, **counts)
    figures = result.figures
    return message("line", at=at, right=f"{figures['right']:.0%}", n=str(figures["n"]), run_id=result.run_id)

"""`opora ingest` and `opora job`: document ingestion on the command line."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from components.language.texts import number, terminal_locale
from pipelines.ingest.jobs import as_json as job_as_json
from pipelines.ingest.jobs import cancel
from pipelines.ingest.report import IngestReport
from pipelines.ingest.usecase import Ingest
from tenants.core.errors import NotFound
from tenants.work import jobs
from tenants.work.jobs import Job
from ui.cli import terminal
from ui.cli.model import fetch_encoder
from ui.cli.terminal import (
    DEFAULT_TENANT,
    CommandGroup,
    Json,
    TenantOption,
    acting_for,
    counted_by,
    ensure_tenant,
    flag_texts,
    print_json,
    progress_bar,
    refused,
)

REFUSALS_SHOWN = 50


job_group = CommandGroup("jobs")
message = job_group.message

JobId = Annotated[str, typer.Argument(help=message("help.job_id"))]


def ingest(
    source: Annotated[str, typer.Argument(metavar="PATH|URL", help=terminal.message("help.source"))],
    tenant: TenantOption = DEFAULT_TENANT,
    prune: Annotated[bool, typer.Option("--prune", help=terminal.message("help.prune"))] = False,
    as_json: Json = False,
) -> None:
    site = source.startswith(("http://", "https://"))
    if not site and not Path(source).exists():
        raise NotFound("path_missing", path=source)
    if tenant == DEFAULT_TENANT:
        ensure_tenant(tenant)
    with acting_for(tenant):
        fetch_encoder()
        ingest = Ingest()
        with progress_bar(terminal.message("ingest.reading")) as update:
            run = ingest.run_site if site else ingest.run_path
            report = run(source, prune=prune, progress=counted_by(update))
        print_report(report, as_json=as_json)
    if report.errors:
        raise typer.Exit(1)


def _print_jobs(listing: Sequence[Job]) -> None:
    if not listing:
        typer.echo(message("none"), err=True)
        return
    rows = (
        (job.job_id, _state(job), _files(job), _progress(job), f"{job.created_at:%Y-%m-%d %H:%M}") for job in listing
    )
    job_group.print_columns(("id", "state", "files", "progress", "created"), rows)


@job_group.tenant_command("list", show=_print_jobs, form=lambda listing: [job_as_json(job) for job in listing])
def list_jobs(
    limit: Annotated[int, typer.Option(min=1, max=1_000, help=message("help.limit"))] = 20,
) -> Sequence[Job]:
    return jobs.latest(limit=limit)


def _print_job(job: Job) -> None:
    typer.echo(message("shown", job_id=job.job_id, state=_state(job), files=_files(job), progress=_progress(job)))
    if job.error is not None:
        typer.echo(message("fault", code=job.error))
    if job.report is not None:
        report: dict[str, Any] = dict(job.report)
        typer.echo(message("report", **report))


@job_group.tenant_command("show", show=_print_job, form=job_as_json)
def show_job(job_id: JobId) -> Job:
    with _named(job_id):
        return jobs.get(job_id)


@job_group.tenant_command("cancel", show=_print_job, form=job_as_json)
def cancel_job(job_id: JobId) -> Job:
    with _named(job_id):
        return cancel(job_id)


def _named(job_id: str) -> AbstractContextManager[None]:
    return NotFound("job_unknown", job_id=job_id).instead_of(NotFound)


def _state(job: Job) -> str:
    return message("state.cancelling" if job.cancelling and not job.finished else f"state.{job.state}")


def _files(job: Job) -> str:
    names = [*job.files, *job.gone]
    return names[0] if len(names) == 1 else message("files", first=names[0], more=len(names) - 1)


def _progress(job: Job) -> str:
    progress: dict[str, Any] = dict(job.progress)
    return message("progress", **progress) if progress else ""


def print_report(report: IngestReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report.as_json())
        return
    counts = report.as_json() | {"seconds": number(report.seconds, 1, locale=terminal_locale())}
    typer.echo(terminal.message("ingest.report", **counts))
    if report.healed:
        typer.echo(terminal.message("ingest.healed"), err=True)
    if report.flagged:
        typer.echo(terminal.message("ingest.flagged", count=len(report.flagged)), err=True)
    for document in report.flagged[:REFUSALS_SHOWN]:
        typer.echo(f"  {document.doc_id}: {flag_texts(document.flags)}", err=True)
    if report.errors:
        typer.echo(terminal.message("ingest.refused", refused=len(report.errors)), err=True)
    for refusal in report.errors[:REFUSALS_SHOWN]:
        source = refusal.doc_id or refusal.source
        line = terminal.message("ingest.line", line=refusal.line) if refusal.line else ""
        where = ", ".join(filter(None, (source, line)))
        typer.echo(f"  {where}: {refused(refusal.error)}" if where else f"  {refused(refusal.error)}", err=True)

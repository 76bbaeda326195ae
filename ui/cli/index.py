"""`opora index`: consistency of the index with the documents, and its generations."""

from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.terminal import (
    DEFAULT_TENANT,
    Group,
    Json,
    TenantOption,
    acting_for,
    print_json,
    progress_bar,
    terminal_console,
)

if TYPE_CHECKING:
    from rich.progress import Progress

    from components.ingest.reconcile import Findings
    from pipelines.ingest.rebuild import OnRebuilding, Rebuilt

_SHOWN = 20
_DAMAGE = {"missing": "missing", "unreadable": "unreadable", "incomplete": "lacking"}


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"library.{key}", terminal_locale(), **params)


def index_message(key: str, **params: str | int) -> str:
    """Return a text about generations in the terminal's language."""
    return text(f"index.{key}", terminal_locale(), **params)


app = typer.Typer(cls=Group, help=message("help.index"), no_args_is_help=True)


@app.command("check", help=message("help.check"))
def check(
    repair: Annotated[bool, typer.Option("--repair", help=message("help.repair"))] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Compare records, index and lexicon; repair differences on request."""
    with acting_for(tenant):
        from pipelines.ingest.library import Library
        from pipelines.ingest.usecase import Ingest

        findings = Library(Ingest().rewrite).check(mend=repair)
    repaired = repair and not findings.clean
    if as_json:
        print_json({**findings.as_json(), "repaired": repaired})
    else:
        _print_findings(findings)
        if repaired:
            typer.echo(message("check.repaired"))
        elif not findings.clean:
            typer.echo(message("check.advice", tenant=tenant), err=True)
    if not findings.clean and not repair:
        raise typer.Exit(1)


@app.command("rebuild", help=index_message("help.rebuild"))
def rebuild(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Re-encode all chunks and switch to the new generation."""
    with acting_for(tenant), progress_bar(index_message("rebuild.encoding")) as progress:
        from pipelines.ingest.usecase import Ingest

        done = Ingest().rebuild().finish(_progress_on(progress))
    _print_rebuilt(done, as_json=as_json)


@app.command("rollback", help=index_message("help.rollback"))
def rollback(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Roll back to the generation before the last rebuild."""
    with acting_for(tenant):
        from pipelines.ingest.usecase import Ingest

        done = Ingest().rollback().finish()
    _print_rebuilt(done, as_json=as_json)


@app.command("generations", help=index_message("help.generations"))
def show_generations(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List the generations and whether a rebuild is due."""
    with acting_for(tenant):
        from pipelines.ingest.rebuild import generations_json
        from pipelines.ingest.usecase import Ingest

        answer = generations_json(Ingest().encoder)
    if as_json:
        print_json(answer)
        return
    if not answer["generations"]:
        typer.echo(index_message("generations.none"), err=True)
        return
    from rich.table import Table

    table = Table()
    for column in ("number", "state", "encoder", "created_at"):
        table.add_column(index_message(f"generations.{column}"))
    for generation in answer["generations"]:
        table.add_row(
            str(generation["number"]),
            index_message(f"state.{generation['state']}"),
            generation["encoder"],
            generation["created_at"],
        )
    terminal_console().print(table)
    if answer["rebuild_due"]:
        typer.echo(index_message("generations.due", digest=answer["encoder"], tenant=tenant), err=True)


def _progress_on(progress: "Progress") -> "OnRebuilding":
    task = progress.task_ids[0]
    return lambda now: progress.update(task, completed=now.chunks, total=now.total or None)


def _print_rebuilt(done: "Rebuilt", *, as_json: bool) -> None:
    if as_json:
        print_json(done.as_json())
        return
    seconds = f"{done.seconds:.1f}"
    typer.echo(index_message("rebuild.done", generation=done.generation, chunks=done.chunks, seconds=seconds))


def _print_findings(findings: "Findings") -> None:
    if findings.damage is not None:
        typer.echo(message(f"check.{_DAMAGE[findings.damage]}"))
    if findings.clean:
        typer.echo(message("check.clean", documents=findings.documents, chunks=findings.chunks))
    for name in ("orphans", "incomplete", "misdescribed", "uploads"):
        ids: tuple[str, ...] = getattr(findings, name)
        if ids:
            typer.echo(message(f"check.{name}", count=len(ids)))
            for item_id in ids[:_SHOWN]:
                typer.echo(f"  {item_id}")
    if findings.lexicon_differs:
        typer.echo(message("check.lexicon"))

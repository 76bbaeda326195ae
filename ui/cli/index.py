"""`opora index`: consistency of the index with the documents, and its generations."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from components.ingest.reconcile import Findings
from components.language.texts import number, terminal_locale
from pipelines.ingest.library import Library
from pipelines.ingest.rebuild import generations_json
from pipelines.ingest.usecase import Ingest
from tenants.core import context
from ui.cli.terminal import CommandGroup, Json, print_json, progress_bar, texts

_SHOWN = 20
_DAMAGE = {"missing": "missing", "unreadable": "unreadable", "incomplete": "lacking"}


group = CommandGroup("index")
message = group.message
library_message = texts("library")


@group.tenant_command("check")
def check(
    repair: Annotated[bool, typer.Option("--repair", help=message("help.repair"))] = False, as_json: Json = False
) -> None:
    findings = Library(Ingest().rewrite).check(mend=repair)
    repaired = repair and not findings.clean
    if as_json:
        print_json({**findings.as_json(), "repaired": repaired})
    else:
        _print_findings(findings)
        if repaired:
            typer.echo(library_message("check.repaired"))
        elif not findings.clean:
            typer.echo(library_message("check.advice", tenant=context.current().tenant_id), err=True)
    if not findings.clean and not repair:
        raise typer.Exit(1)


def _print_done(act: str, done: Mapping[str, Any]) -> None:
    seconds = number(done["seconds"], 1, locale=terminal_locale())
    typer.echo(message(f"{act}.done", generation=done["generation"], chunks=done["chunks"], seconds=seconds))


@group.tenant_command("rebuild", show=partial(_print_done, "rebuild"))
def rebuild() -> Mapping[str, Any]:
    with progress_bar(message("rebuild.encoding")) as update:
        done = Ingest().rebuild().finish(lambda now: update(completed=now.chunks, total=now.total or None))
        return done.as_json()


@group.tenant_command("rollback", show=partial(_print_done, "rollback"))
def rollback() -> Mapping[str, Any]:
    return Ingest().rollback().finish().as_json()


def _print_generations(answer: Mapping[str, Any]) -> None:
    if not answer["generations"]:
        typer.echo(message("generations.none"), err=True)
        return
    rows = (
        (
            found["number"],
            message(f"state.{found['state']}"),
            message(f"collection.{'shared' if found['shared'] else 'own'}"),
            found["encoder"],
            found["created_at"],
        )
        for found in answer["generations"]
    )
    group.print_columns(("number", "state", "collection", "encoder", "created_at"), rows, "generations")
    tenant = context.current().tenant_id
    if answer["rebuild_due"]:
        typer.echo(message("generations.due", digest=answer["encoder"], tenant=tenant), err=True)
    if answer["move_due"]:
        typer.echo(message("generations.move_due", tenant=tenant), err=True)


@group.tenant_command("generations", show=_print_generations)
def show_generations() -> Mapping[str, Any]:
    return generations_json(Ingest().encoder)


def _print_findings(findings: Findings) -> None:
    if findings.damage is not None:
        typer.echo(library_message(f"check.{_DAMAGE[findings.damage]}"))
    if findings.clean:
        typer.echo(library_message("check.clean", documents=findings.documents, chunks=findings.chunks))
    for name in ("orphans", "incomplete", "misdescribed", "uploads"):
        ids: tuple[str, ...] = getattr(findings, name)
        if ids:
            typer.echo(library_message(f"check.{name}", count=len(ids)))
            for item_id in ids[:_SHOWN]:
                typer.echo(f"  {item_id}")
    if findings.lexicon_differs:
        typer.echo(library_message("check.lexicon"))

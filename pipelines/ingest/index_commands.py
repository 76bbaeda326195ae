"""`opora index`: whether the index agrees with the documents."""

from typing import TYPE_CHECKING, Annotated

import typer

from components.language.terminal import terminal_locale
from components.language.texts import text
from pipelines.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json

if TYPE_CHECKING:
    from components.ingest.reconcile import Findings

_SHOWN = 20


def say(key: str, **params: str | int) -> str:
    """A text of these commands in the terminal's language."""
    return text(f"library.{key}", terminal_locale(), **params)


app = typer.Typer(cls=Group, help=say("help.index"), no_args_is_help=True)


@app.command("check", help=say("help.check"))
def check(
    repair: Annotated[bool, typer.Option("--repair", help=say("help.repair"))] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Compare records, index and lexicon; put right what differs when asked to."""
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
            typer.echo(say("check.repaired"))
        elif not findings.clean:
            typer.echo(say("check.advice", tenant=tenant), err=True)
    if not findings.clean and not repair:
        raise typer.Exit(1)


def _print_findings(findings: "Findings") -> None:
    if findings.clean:
        typer.echo(say("check.clean", documents=findings.documents, chunks=findings.chunks))
    for name in ("orphans", "incomplete", "misdescribed", "uploads"):
        ids: tuple[str, ...] = getattr(findings, name)
        if ids:
            typer.echo(say(f"check.{name}", count=len(ids)))
            for one in ids[:_SHOWN]:
                typer.echo(f"  {one}")
    if findings.lexicon_differs:
        typer.echo(say("check.lexicon"))

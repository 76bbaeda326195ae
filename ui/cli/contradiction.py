"""`opora contradiction` and `opora agreement`: passages that contradict each other, and pairs marked as consistent."""

from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"relations.{key}", terminal_locale(), **params)


contradiction_app = typer.Typer(cls=Group, help=message("help.contradiction"), no_args_is_help=True)
agreement_app = typer.Typer(cls=Group, help=message("help.agreement"), no_args_is_help=True)

ChunkId = Annotated[str, typer.Argument(help=message("help.chunk_id"))]


@contradiction_app.callback()
def group() -> None:
    """Keep the subcommand name, although there is only one command."""


@contradiction_app.command("list", help=message("help.contradiction_list"))
def contradiction_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List open contradictions."""
    with acting_for(tenant):
        from pipelines.ask.articles import contradictions
        from ui.api.contradiction import ContradictionsAnswer

        answer = ContradictionsAnswer(contradictions=contradictions.undecided())
    if as_json:
        print_json(answer.model_dump(mode="json")["contradictions"])
        return
    for one in answer.contradictions:
        typer.echo(message("pair.found", kind=one.kind, day=f"{one.at:%F}"))
        for side in (one.trusted, one.other):
            typer.echo(f"  {side.chunk_id} {side.doc_id}: {' '.join(side.text.split())}")


@agreement_app.command("list", help=message("help.agreement_list"))
def agreement_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List the pairs marked as consistent."""
    with acting_for(tenant):
        from tenants.knowledge import agreements
        from ui.api.contradiction import AgreementsAnswer

        answer = AgreementsAnswer(agreements=agreements.all())
    if as_json:
        print_json(answer.model_dump(mode="json")["agreements"])
        return
    for one in answer.agreements:
        typer.echo(f"{one.chunk_id} {one.doc_id}\n{one.other_chunk_id} {one.other_doc_id}")
        typer.echo(f"  {one.decided_by}, {one.at:%F %T}")


@agreement_app.command("add", help=message("help.agreement_add"))
def agreement_add(chunk_id: ChunkId, other_chunk_id: ChunkId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Mark two passages as consistent."""
    with acting_for(tenant):
        from pipelines.ask.articles import contradictions

        contradictions.agree(chunk_id, other_chunk_id)
    typer.echo(message("agreement_set", chunk_id=chunk_id, other_chunk_id=other_chunk_id))


@agreement_app.command("remove", help=message("help.agreement_remove"))
def agreement_remove(chunk_id: ChunkId, other_chunk_id: ChunkId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Undo the mark."""
    with acting_for(tenant):
        from tenants.knowledge import agreements

        agreements.remove(chunk_id, other_chunk_id)
    typer.echo(message("agreement_removed", chunk_id=chunk_id, other_chunk_id=other_chunk_id))

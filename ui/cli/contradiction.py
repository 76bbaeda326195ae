"""`opora contradiction` and `opora agreement`: passages that contradict each other, and pairs marked as consistent."""

from typing import Annotated

import typer

from pipelines.ask.articles import contradictions
from pipelines.ask.articles.contradictions import Contradiction
from tenants.knowledge import agreements
from tenants.knowledge.agreements import Agreement
from ui.cli.terminal import CommandGroup

contradiction_group = CommandGroup("relations", prefix="contradiction_")
agreement_group = CommandGroup("relations", prefix="agreement_")
message = contradiction_group.message

ChunkId = Annotated[str, typer.Argument(help=message("help.chunk_id"))]


def _print_contradictions(found: tuple[Contradiction, ...]) -> None:
    for pair in found:
        typer.echo(message("pair.found", kind=pair.kind, day=f"{pair.at:%F}"))
        for side in (pair.trusted, pair.other):
            typer.echo(f"  {side.chunk_id} {side.doc_id}: {' '.join(side.text.split())}")


def _print_agreements(found: tuple[Agreement, ...]) -> None:
    for pair in found:
        typer.echo(f"{pair.chunk_id} {pair.doc_id}\n{pair.other_chunk_id} {pair.other_doc_id}")
        typer.echo(f"  {pair.decided_by}, {pair.at:%F %T}")


@contradiction_group.tenant_command("list", show=_print_contradictions)
def contradiction_list() -> tuple[Contradiction, ...]:
    """List open contradictions."""
    return contradictions.undecided()


@agreement_group.tenant_command("list", show=_print_agreements)
def agreement_list() -> tuple[Agreement, ...]:
    """List the pairs marked as consistent."""
    return agreements.all()


@agreement_group.tenant_command("add")
def agreement_add(chunk_id: ChunkId, other_chunk_id: ChunkId) -> None:
    """Mark two passages as consistent."""
    contradictions.agree(chunk_id, other_chunk_id)
    typer.echo(message("agreement_set", chunk_id=chunk_id, other_chunk_id=other_chunk_id))


@agreement_group.tenant_command("remove")
def agreement_remove(chunk_id: ChunkId, other_chunk_id: ChunkId) -> None:
    """Undo the mark."""
    agreements.remove(chunk_id, other_chunk_id)
    typer.echo(message("agreement_removed", chunk_id=chunk_id, other_chunk_id=other_chunk_id))

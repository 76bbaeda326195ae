"""`opora edge`, `rejected`, `contradiction` and `agreement`: relations between documents and between passages."""

from typing import Annotated

import typer
from pydantic import ValidationError

from pipelines.ask.articles import contradictions
from pipelines.ask.articles.contradictions import Contradiction
from pipelines.problems import refused_as
from tenants.core.errors import Invalid
from tenants.knowledge import agreements, document_edges, rejected
from tenants.knowledge.agreements import Agreement
from ui.api.relation import EdgeRequest, EdgesAnswer, RejectedAnswer, RejectedRequest
from ui.cli.terminal import CommandGroup, print_table

edge_group = CommandGroup("relations", prefix="edge_")
rejected_group = CommandGroup("relations", prefix="rejected_")
contradiction_group = CommandGroup("relations", prefix="contradiction_")
agreement_group = CommandGroup("relations", prefix="agreement_")
message = edge_group.message

From = Annotated[str, typer.Argument(help=message("help.from_doc"))]
Kind = Annotated[str, typer.Argument(help=message("help.kind"))]
ChunkId = Annotated[str, typer.Argument(help=message("help.chunk_id"))]
To = Annotated[str, typer.Argument(help=message("help.to_doc"))]


def _print_edges(answer: EdgesAnswer) -> None:
    headers = (message(name) for name in ("from_doc", "kind", "to_doc", "weight", "declared"))
    rows = (
        (edge.from_doc, edge.kind, edge.to_doc, f"{edge.weight:g}", "•" if edge.declared else "")
        for edge in answer.edges
    )
    print_table(headers, rows)


def _print_rejected(answer: RejectedAnswer) -> None:
    headers = ["id", *(message(name) for name in ("text", "reason", "day", "doc_id"))]
    print_table(headers, ((one.rejected_id, one.text, one.reason, one.day, one.doc_id) for one in answer.rejected))


@edge_group.tenant_command("list", show=_print_edges)
def edge_list(doc: Annotated[str | None, typer.Option(help=message("help.doc"))] = None) -> EdgesAnswer:
    return EdgesAnswer(edges=document_edges.page(doc, limit=None))


@edge_group.tenant_command("add")
def edge_add(
    from_doc: From,
    kind: Kind,
    to_doc: To,
    weight: Annotated[float, typer.Option(help=message("help.weight"))] = 1.0,
) -> None:
    document_edges.put(_edge(from_doc, kind, to_doc, weight).edge())
    typer.echo(message("edge_set", from_doc=from_doc, kind=kind, to_doc=to_doc, weight=f"{weight:g}"))


@edge_group.tenant_command("remove")
def edge_remove(from_doc: From, kind: Kind, to_doc: To) -> None:
    document_edges.remove(from_doc, kind, to_doc)
    typer.echo(message("edge_removed", from_doc=from_doc, kind=kind, to_doc=to_doc))


@rejected_group.tenant_command("list", show=_print_rejected)
def rejected_list() -> RejectedAnswer:
    return RejectedAnswer(rejected=rejected.all())


@rejected_group.tenant_command("add")
def rejected_add(
    approach: Annotated[str, typer.Argument(help=message("help.approach"))],
    reason: Annotated[str, typer.Option(help=message("help.reason"))] = "",
    doc: Annotated[str | None, typer.Option(help=message("help.rejected_doc"))] = None,
    day: Annotated[str | None, typer.Option(help=message("help.day"))] = None,
) -> None:
    with refused_as("rejected_invalid"):
        request = RejectedRequest(text=approach, reason=reason, doc_id=doc, day=day)
    typer.echo(message("rejected_set", rejected_id=rejected.put(request.rejected()).rejected_id))


@rejected_group.tenant_command("remove")
def rejected_remove(rejected_id: Annotated[str, typer.Argument(help=message("help.rejected_id"))]) -> None:
    rejected.remove(rejected_id)
    typer.echo(message("rejected_removed", rejected_id=rejected_id))


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
    return contradictions.undecided()


@agreement_group.tenant_command("list", show=_print_agreements)
def agreement_list() -> tuple[Agreement, ...]:
    return agreements.all()


@agreement_group.tenant_command("add")
def agreement_add(chunk_id: ChunkId, other_chunk_id: ChunkId) -> None:
    contradictions.agree(chunk_id, other_chunk_id)
    typer.echo(message("agreement_set", chunk_id=chunk_id, other_chunk_id=other_chunk_id))


@agreement_group.tenant_command("remove")
def agreement_remove(chunk_id: ChunkId, other_chunk_id: ChunkId) -> None:
    agreements.remove(chunk_id, other_chunk_id)
    typer.echo(message("agreement_removed", chunk_id=chunk_id, other_chunk_id=other_chunk_id))


def _edge(from_doc: str, kind: str, to_doc: str, weight: float) -> EdgeRequest:
    try:
        return EdgeRequest.model_validate({"from_doc": from_doc, "kind": kind, "to_doc": to_doc, "weight": weight})
    except ValidationError as unfit:
        code = "edge_weight_invalid" if unfit.errors()[0]["loc"] == ("weight",) else "edge_kind_unknown"
        raise Invalid(code, kind=kind) from unfit

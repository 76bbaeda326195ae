"""`opora edge` and `opora rejected`: relations between documents, and approaches that must not be proposed."""

from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from components.language.texts import terminal_locale, text
from tenants.core.errors import Invalid
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from pipelines.ingest.relation_contract import EdgeRequest


def message(key: str, **params: str | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"relations.{key}", terminal_locale(), **params)


edge_app = typer.Typer(cls=Group, help=message("help.edge"), no_args_is_help=True)
rejected_app = typer.Typer(cls=Group, help=message("help.rejected"), no_args_is_help=True)

From = Annotated[str, typer.Argument(help=message("help.from_doc"))]
Kind = Annotated[str, typer.Argument(help=message("help.kind"))]
To = Annotated[str, typer.Argument(help=message("help.to_doc"))]


@edge_app.command("list", help=message("help.edge_list"))
def edge_list(
    doc: Annotated[str | None, typer.Option(help=message("help.doc"))] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """List all edges, or those of one document."""
    with acting_for(tenant):
        from pipelines.ingest.relation_contract import edges_answer
        from tenants.knowledge import edges

        answer = edges_answer(edges.all() if doc is None else edges.of(doc))
    if as_json:
        print_json(answer.model_dump(mode="json"))
        return
    from rich.table import Table

    table = Table(message("from_doc"), message("kind"), message("to_doc"), message("weight"), message("declared"))
    for edge in answer.edges:
        table.add_row(edge.from_doc, edge.kind, edge.to_doc, f"{edge.weight:g}", "•" if edge.declared else "")
    terminal_console().print(table)


@edge_app.command("add", help=message("help.edge_add"))
def edge_add(
    from_doc: From,
    kind: Kind,
    to_doc: To,
    weight: Annotated[float, typer.Option(help=message("help.weight"))] = 1.0,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Set an edge."""
    edge = _edge(from_doc, kind, to_doc, weight)
    with acting_for(tenant):
        from tenants.knowledge import edges

        edges.put(edge.edge())
    typer.echo(message("edge_set", from_doc=from_doc, kind=kind, to_doc=to_doc, weight=f"{weight:g}"))


@edge_app.command("remove", help=message("help.edge_remove"))
def edge_remove(from_doc: From, kind: Kind, to_doc: To, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Remove an edge."""
    with acting_for(tenant):
        from tenants.knowledge import edges

        edges.remove(from_doc, kind, to_doc)
    typer.echo(message("edge_removed", from_doc=from_doc, kind=kind, to_doc=to_doc))


@rejected_app.command("list", help=message("help.rejected_list"))
def rejected_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List all rejected approaches."""
    with acting_for(tenant):
        from pipelines.ingest.relation_contract import rejected_answer
        from tenants.knowledge import rejected

        answer = rejected_answer(rejected.all())
    if as_json:
        print_json(answer.model_dump(mode="json"))
        return
    from rich.table import Table

    table = Table("id", message("text"), message("reason"), message("day"), message("doc_id"))
    for approach in answer.rejected:
        table.add_row(approach.rejected_id, approach.text, approach.reason, approach.day, approach.doc_id or "")
    terminal_console().print(table)


@rejected_app.command("add", help=message("help.rejected_add"))
def rejected_add(
    approach: Annotated[str, typer.Argument(help=message("help.approach"))],
    reason: Annotated[str, typer.Option(help=message("help.reason"))] = "",
    doc: Annotated[str | None, typer.Option(help=message("help.rejected_doc"))] = None,
    day: Annotated[str | None, typer.Option(help=message("help.day"))] = None,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Reject an approach."""
    from pipelines.ingest.relation_contract import RejectedRequest

    try:
        request = RejectedRequest(text=approach, reason=reason, doc_id=doc, day=day)
    except ValidationError as unfit:
        raise Invalid("rejected_invalid") from unfit
    with acting_for(tenant):
        from tenants.knowledge import rejected

        stored = rejected.put(request.rejected())
    typer.echo(message("rejected_set", rejected_id=stored.rejected_id))


@rejected_app.command("remove", help=message("help.rejected_remove"))
def rejected_remove(
    rejected_id: Annotated[str, typer.Argument(help=message("help.rejected_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Withdraw a rejection."""
    with acting_for(tenant):
        from tenants.knowledge import rejected

        rejected.remove(rejected_id)
    typer.echo(message("rejected_removed", rejected_id=rejected_id))


def _edge(from_doc: str, kind: str, to_doc: str, weight: float) -> "EdgeRequest":
    from pipelines.ingest.relation_contract import EdgeRequest

    try:
        return EdgeRequest.model_validate({"from_doc": from_doc, "kind": kind, "to_doc": to_doc, "weight": weight})
    except ValidationError as unfit:
        code = "edge_weight_invalid" if unfit.errors()[0]["loc"] == ("weight",) else "edge_kind_unknown"
        raise Invalid(code, kind=kind) from unfit

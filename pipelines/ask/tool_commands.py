"""`opora tool`: what a tenant's assistant may look up elsewhere."""

import json
from pathlib import Path
from typing import Annotated

import typer

from components.language.terminal import terminal_locale
from components.language.texts import text
from pipelines.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console
from tenants.errors import Invalid


def say(key: str, **params: str | float) -> str:
    """A text of these commands in the terminal's language."""
    return text(f"tools.{key}", terminal_locale(), **params)


tool_app = typer.Typer(cls=Group, help=say("help.tool"), no_args_is_help=True)


@tool_app.command("list", help=say("help.list"))
def tool_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Show all tools, without their secrets."""
    with acting_for(tenant):
        from pipelines.ask.tool_routes import answered
        from tenants import tools

        found = answered(tools.all())
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    from rich.table import Table

    table = Table(say("name"), say("title"), say("description"), say("url"))
    for one in found.tools:
        table.add_row(one.name, one.title, one.description, one.url)
    terminal_console().print(table)


@tool_app.command("put", help=say("help.put"))
def tool_put(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=say("help.file"))],
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Add the tool that a JSON file describes, or replace the one of its name."""
    from tenants import tools

    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as broken:
        raise Invalid("tool_invalid", field=file.name) from broken
    if not isinstance(given, dict):
        raise Invalid("tool_invalid", field=file.name)
    with acting_for(tenant):
        kept = tools.put(tools.parsed(given))
    typer.echo(say("set", name=kept.name))


@tool_app.command("remove", help=say("help.remove"))
def tool_remove(
    name: Annotated[str, typer.Argument(help=say("help.name"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Take a tool away."""
    with acting_for(tenant):
        from tenants import tools

        tools.remove(name)
    typer.echo(say("removed", name=name))

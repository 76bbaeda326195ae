"""`opora tool`: the HTTP tools that a tenant's assistant may call."""

import json
from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.core.errors import Invalid
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console


def message(key: str, **params: str | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"tools.{key}", terminal_locale(), **params)


ToolName = Annotated[str, typer.Argument(help=message("help.name"))]
tool_app = typer.Typer(cls=Group, help=message("help.tool"), no_args_is_help=True)


@tool_app.command("list", help=message("help.list"))
def tool_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List all tools, without their secrets."""
    with acting_for(tenant):
        from tenants.knowledge import tools
        from ui.api.tool import tools_answer

        listing = tools_answer(tools.all())
    if as_json:
        print_json(listing.model_dump(mode="json"))
        return
    from rich.table import Table

    table = Table(message("name"), message("title"), message("description"), message("url"))
    for tool in listing.tools:
        table.add_row(tool.name, tool.title, tool.description, tool.url)
    terminal_console().print(table)


@tool_app.command("put", help=message("help.put"))
def tool_put(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=message("help.file"))],
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Add the tool described by a JSON file, or replace the one with the same name."""
    from tenants.knowledge import tools

    try:
        definition = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as broken:
        raise Invalid("tool_invalid", field=file.name) from broken
    if not isinstance(definition, dict):
        raise Invalid("tool_invalid", field=file.name)
    with acting_for(tenant):
        stored = tools.put(tools.parsed(definition))
    typer.echo(message("set", name=stored.name))


@tool_app.command("enable", help=message("help.enable"))
def tool_enable(name: ToolName, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Enable a tool."""
    _set_enabled(name, tenant, enabled=True)


@tool_app.command("disable", help=message("help.disable"))
def tool_disable(name: ToolName, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Disable a tool."""
    _set_enabled(name, tenant, enabled=False)


@tool_app.command("test", help=message("help.test"))
def tool_test(
    name: ToolName,
    question: Annotated[str, typer.Argument(help=message("help.question"))],
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Call a tool with a sample question."""
    with acting_for(tenant):
        from tenants.knowledge import tools
        from ui.api.tool import trial_of

        tried = trial_of(tools.get(name), question)
    if as_json:
        print_json(tried.model_dump(mode="json"))
    else:
        typer.echo(tried.text or text(f"desk.settings.fault.{tried.fault}", terminal_locale()))
    if tried.fault:
        raise typer.Exit(1)


def _set_enabled(name: str, tenant: str, *, enabled: bool) -> None:
    with acting_for(tenant):
        from tenants.knowledge import tools

        tools.set_enabled(name, enabled=enabled)
    typer.echo(message("set", name=name))


@tool_app.command("remove", help=message("help.remove"))
def tool_remove(name: ToolName, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Remove a tool."""
    with acting_for(tenant):
        from tenants.knowledge import tools

        tools.remove(name)
    typer.echo(message("removed", name=name))

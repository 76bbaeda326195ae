"""`opora tool`: the HTTP tools that a tenant's assistant may call."""

from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.knowledge import tools
from ui.api.tool import ToolsAnswer, ToolTrial, tools_answer, trial_of
from ui.cli.terminal import CommandGroup, print_table, read_json

group = CommandGroup("tools")
message = group.message

ToolName = Annotated[str, typer.Argument(help=message("help.name"))]


def _print_tools(listing: ToolsAnswer) -> None:
    headers = (message(name) for name in ("name", "title", "description", "url"))
    print_table(headers, ((tool.name, tool.title, tool.description, tool.url) for tool in listing.tools))


def _print_trial(tried: ToolTrial) -> None:
    typer.echo(tried.text or text(f"desk.settings.fault.{tried.fault}", terminal_locale()))


@group.tenant_command("list", show=_print_tools)
def tool_list() -> ToolsAnswer:
    return tools_answer(tools.all())


@group.tenant_command("put")
def tool_put(file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help=message("help.file"))]) -> None:
    stored = tools.put(tools.parsed(read_json(file, "tool_invalid", field=file.name)))
    typer.echo(message("set", name=stored.name))


@group.tenant_command("enable")
def tool_enable(name: ToolName) -> None:
    tools.set_enabled(name, enabled=True)
    typer.echo(message("set", name=name))


@group.tenant_command("disable")
def tool_disable(name: ToolName) -> None:
    tools.set_enabled(name, enabled=False)
    typer.echo(message("set", name=name))


@group.tenant_command("test", show=_print_trial, fails=lambda tried: tried.fault)
def tool_test(name: ToolName, question: Annotated[str, typer.Argument(help=message("help.question"))]) -> ToolTrial:
    return trial_of(name, question)


@group.tenant_command("remove")
def tool_remove(name: ToolName) -> None:
    tools.remove(name)
    typer.echo(message("removed", name=name))

"""`opora tenant policy`: what a tenant has decided for its assistant."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from pipelines.terminal import Json, acting_for, print_json, terminal_console
from tenants.errors import Invalid

if TYPE_CHECKING:
    from tenants.policy import Policy


def message(key: str, **params: str | int) -> str:
    """A text of this command in the terminal's language."""
    return text(f"policy.{key}", terminal_locale(), **params)


def policy_command(
    tenant_id: Annotated[str, typer.Argument(help=message("help.tenant_id"))],
    changes: Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help=message("help.set"))] = [],  # noqa: B006 - Typer copies defaults
    defaults: Annotated[list[str], typer.Option("--unset", metavar="NAME", help=message("help.unset"))] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Show a tenant's policy, after changing what is given."""
    from tenants import policy

    fields = policy.Policy.model_fields
    if unknown := set(defaults) - set(fields):
        raise Invalid("policy_invalid", field=min(unknown))
    values = {name: fields[name].get_default(call_default_factory=True) for name in defaults}
    values |= dict(map(_parsed, changes))
    with acting_for(tenant_id):
        if values:
            policy.change(**values)
        now = policy.current()
    if as_json:
        print_json(now.model_dump(mode="json"))
    else:
        _print(now)


def _parsed(change: str) -> tuple[str, object]:
    """A name and a value, which is JSON where it can be read as such and a text otherwise."""
    name, equals, value = change.partition("=")
    if not equals:
        raise Invalid("policy_invalid", field=change)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _print(now: "Policy") -> None:
    from rich.table import Table

    table = Table(message("name"), message("value"), message("meaning"))
    for name, value in now.model_dump(mode="json").items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        table.add_row(name, shown, type(now).model_fields[name].description)
    terminal_console().print(table)

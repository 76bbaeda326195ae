"""`opora tenant policy`: the tenant's policy for its assistant."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.accounts.changes import AREAS
from tenants.core.errors import Invalid
from ui.cli.terminal import Json, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from tenants.accounts.policy import Policy


def message(key: str, **params: str | int) -> str:
    """Return a text of this command in the terminal's language."""
    return text(f"policy.{key}", terminal_locale(), **params)


def policy_command(
    tenant_id: Annotated[str, typer.Argument(help=message("help.tenant_id"))],
    changes: Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help=message("help.set"))] = [],  # noqa: B006 - Typer copies defaults
    defaults: Annotated[list[str], typer.Option("--unset", metavar="NAME", help=message("help.unset"))] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Set the given rules, if any, and show the tenant's policy."""
    from tenants.accounts import policy

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


def changes_command(
    tenant_id: Annotated[str, typer.Argument(help=message("help.tenant_id"))],
    area: Annotated[str, typer.Option(help=message("help.area", areas=", ".join(AREAS)))] = "",
    undo: Annotated[str, typer.Option(metavar="ID", help=message("help.undo"))] = "",
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    as_json: Json = False,
) -> None:
    """Undo the named change, if any, and show the history of changes."""
    from pipelines.ask.settings_changes import undo as undo_change
    from tenants.accounts import changes
    from ui.api.settings import change_part

    chosen = next((one for one in AREAS if one == area), None)
    if area and chosen is None:
        raise Invalid("area_unknown", area=area, areas=", ".join(AREAS))
    with acting_for(tenant_id):
        if undo:
            undo_change(undo)
        found = changes.latest(chosen, limit=limit)
    if as_json:
        print_json([change_part(one).model_dump(mode="json") for one in found])
        return
    from rich.table import Table

    table = Table(*(message(f"column.{name}") for name in ("change", "at", "by", "what", "fields")))
    for one in found:
        what = " ".join(filter(None, (one.area, one.about, one.act)))
        table.add_row(one.change_id, f"{one.at:%Y-%m-%d %H:%M}", one.by, what, ", ".join({**one.before, **one.after}))
    terminal_console().print(table)


def sign_in_command(
    tenant_id: Annotated[str, typer.Argument(help=message("help.tenant_id"))],
    file: Annotated[
        Path | None, typer.Option("--set", exists=True, dir_okay=False, help=message("help.provider"))
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help=message("help.clear_provider"))] = False,
) -> None:
    """Set the tenant's identity provider, if given, and show it."""
    from tenants.desk import providers
    from ui.api.settings import sign_in_answer

    with acting_for(tenant_id):
        if file is not None:
            try:
                given = json.loads(file.read_text(encoding="utf-8"))
            except ValueError as broken:
                raise Invalid("provider_invalid", field=file.name) from broken
            providers.put(providers.parsed(given if isinstance(given, dict) else {}))
        elif clear:
            providers.remove()
        print_json(sign_in_answer().model_dump(mode="json"))


def _parsed(change: str) -> tuple[str, object]:
    """Parse a name and a value; the value is read as JSON if possible, otherwise as text."""
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

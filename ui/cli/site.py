"""`opora site`: the websites that show a tenant's widget."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tenants.chats import sites
from tenants.chats.sites import Site
from ui.api.site import site_part
from ui.cli.terminal import CommandGroup, print_table, read_json

group = CommandGroup("sites")
message = group.message

Key = Annotated[str, typer.Argument(help=message("help.key"))]
Config = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help=message("help.config"))]


def _described(site: Site, *, secret: bool = False) -> dict[str, object]:
    return site_part(site, secret=secret).model_dump(mode="json", exclude_none=True)


def _print_site(site: dict[str, object]) -> None:
    for name, value in site.items():
        typer.echo(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")


def _print_sites(found: list[dict[str, Any]]) -> None:
    headers = message("key"), message("name"), message("origins")
    print_table(headers, ((site["key"], site["name"], "\n".join(site["origins"])) for site in found))


@group.tenant_command("add", show=_print_site)
def site_add(
    name: Annotated[str, typer.Argument(help=message("help.name"))],
    origins: Annotated[list[str], typer.Option("--origin", help=message("help.origin"))],
    config: Config = None,
    key: Annotated[str, typer.Option(help=message("help.own_key"))] = "",
    identified: Annotated[bool, typer.Option("--identified", help=message("help.identified"))] = False,
    identity_required: Annotated[bool, typer.Option("--identity-required", help=message("help.required"))] = False,
) -> dict[str, object]:
    chosen = sites.parsed(_read(config)) if config else None
    added = sites.add(name, origins, chosen, identified=identified, identity_required=identity_required, key=key)
    return _described(added, secret=True)


@group.tenant_command("list", show=_print_sites)
def site_list() -> list[dict[str, object]]:
    return [_described(site) for site in sites.own()]


@group.tenant_command("show", show=_print_site)
def site_show(key: Key) -> dict[str, object]:
    return _described(sites.get(key))


@group.tenant_command("set", show=_print_site)
def site_set(
    key: Key,
    name: Annotated[str | None, typer.Option(help=message("help.name"))] = None,
    origins: Annotated[list[str] | None, typer.Option("--origin", help=message("help.origin"))] = None,
    config: Config = None,
    identity_required: Annotated[
        bool | None, typer.Option("--identity-required/--identity-optional", help=message("help.required"))
    ] = None,
) -> dict[str, object]:
    fields = _read(config) if config else {}
    return _described(sites.update(key, name=name, origins=origins, config=fields, identity_required=identity_required))


@group.tenant_command("rotate", show=_print_site)
def site_rotate(
    key: Key,
    revoke: Annotated[bool, typer.Option("--revoke", help=message("help.revoke"))] = False,
    identity: Annotated[bool, typer.Option("--identity", help=message("help.rotate_identity"))] = False,
) -> dict[str, object]:
    return _described(sites.rotate(key, revoke=revoke, identity=identity), secret=identity)


@group.tenant_command("remove")
def site_remove(key: Key) -> None:
    sites.remove(key)
    typer.echo(message("removed", site=key))


def _read(file: Path) -> dict[str, object]:
    return read_json(file, "site_invalid", field=file.name)

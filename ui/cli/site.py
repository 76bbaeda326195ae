"""`opora site`: the websites that show a tenant's widget."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.core.errors import Invalid
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from tenants.chats.sites import Site


def message(key: str, **params: str | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"sites.{key}", terminal_locale(), **params)


site_app = typer.Typer(cls=Group, help=message("help.site"), no_args_is_help=True)
Key = Annotated[str, typer.Argument(help=message("help.key"))]


@site_app.command("add", help=message("help.add"))
def site_add(
    name: Annotated[str, typer.Argument(help=message("help.name"))],
    origins: Annotated[list[str], typer.Option("--origin", help=message("help.origin"))],
    config: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help=message("help.config"))] = None,
    key: Annotated[str, typer.Option(help=message("help.own_key"))] = "",
    identified: Annotated[bool, typer.Option("--identified", help=message("help.identified"))] = False,
    identity_required: Annotated[bool, typer.Option("--identity-required", help=message("help.required"))] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Add a site. Its identity secret is shown only now and by `rotate --identity`."""
    with acting_for(tenant):
        from tenants.chats import sites

        chosen = sites.parsed(_read(config)) if config else None
        added = sites.add(name, origins, chosen, identified=identified, identity_required=identity_required, key=key)
    _print_one(added, as_json=as_json, secret=True)


@site_app.command("list", help=message("help.list"))
def site_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List all sites, without secrets."""
    with acting_for(tenant):
        from tenants.chats import sites

        found = sites.own()
    if as_json:
        print_json([described(one) for one in found])
        return
    from rich.table import Table

    table = Table(message("key"), message("name"), message("origins"))
    for one in found:
        table.add_row(one.key, one.name, "\n".join(one.origins))
    terminal_console().print(table)


@site_app.command("show", help=message("help.show"))
def site_show(key: Key, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """Show one site, without secrets."""
    with acting_for(tenant):
        from tenants.chats import sites

        found = sites.get(key)
    _print_one(found, as_json=as_json)


@site_app.command("set", help=message("help.set"))
def site_set(
    key: Key,
    name: Annotated[str | None, typer.Option(help=message("help.name"))] = None,
    origins: Annotated[list[str] | None, typer.Option("--origin", help=message("help.origin"))] = None,
    config: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help=message("help.config"))] = None,
    identity_required: Annotated[
        bool | None, typer.Option("--identity-required/--identity-optional", help=message("help.required"))
    ] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Change the given settings of a site."""
    with acting_for(tenant):
        from tenants.chats import sites

        fields = _read(config) if config else {}
        changed = sites.update(key, name=name, origins=origins, config=fields, identity_required=identity_required)
    _print_one(changed, as_json=as_json)


@site_app.command("rotate", help=message("help.rotate"))
def site_rotate(
    key: Key,
    revoke: Annotated[bool, typer.Option("--revoke", help=message("help.revoke"))] = False,
    identity: Annotated[bool, typer.Option("--identity", help=message("help.rotate_identity"))] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Sign visitor tokens with a new secret."""
    with acting_for(tenant):
        from tenants.chats import sites

        rotated = sites.rotate(key, revoke=revoke, identity=identity)
    _print_one(rotated, as_json=as_json, secret=identity)


@site_app.command("remove", help=message("help.remove"))
def site_remove(key: Key, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Remove a site."""
    with acting_for(tenant):
        from tenants.chats import sites

        sites.remove(key)
    typer.echo(message("removed", site=key))


def described(site: "Site") -> dict[str, object]:
    """Return a site without its secrets."""
    return {
        "key": site.key,
        "name": site.name,
        "origins": list(site.origins),
        "config": site.config.model_dump(mode="json"),
        "identified": site.identity_secret is not None,
        "identity_required": site.identity_required,
        "created_at": site.created_at.isoformat(),
    }


def _print_one(site: "Site", *, as_json: bool, secret: bool = False) -> None:
    shown = described(site)
    if secret and site.identity_secret:
        shown["identity_secret"] = site.identity_secret
    if as_json:
        print_json(shown)
        return
    for name, value in shown.items():
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        typer.echo(f"{name}: {written}")


def _read(file: Path) -> dict[str, object]:
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as broken:
        raise Invalid("site_invalid", field=file.name) from broken
    if not isinstance(given, dict):
        raise Invalid("site_invalid", field=file.name)
    return given

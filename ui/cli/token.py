"""`opora token` and `opora keys`: tokens, revocations, and the keys for signing and encryption."""

from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"tokens.{key}", terminal_locale(), **params)


token_app = typer.Typer(cls=Group, help=message("help.token"), no_args_is_help=True)
keys_app = typer.Typer(cls=Group, help=message("help.keys"), no_args_is_help=True)

_DAY = 86_400


@token_app.command("list", help=message("help.list"))
def token_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List the issued tokens and whether they are valid."""
    with acting_for(tenant):
        from tenants.access import issued_tokens

        listed = issued_tokens.all()
    if as_json:
        from ui.api.token import TokensAnswer

        print_json(TokensAnswer(tokens=listed).model_dump(mode="json")["tokens"])
        return
    from rich.table import Table

    table = Table()
    for name in ("id", "subject", "scopes", "issued", "used", "ends", "state"):
        table.add_column(message(f"column.{name}"), overflow="fold")
    for one in listed:
        used_at = f"{one.used_at:%F %R}" if one.used_at else "–"
        state = message(f"state.{one.state}")
        moments = f"{one.issued_at:%F %R}", used_at, f"{one.ends_at:%F %R}"
        table.add_row(one.token_id, one.subject, " ".join(one.scopes), *moments, state)
    terminal_console().print(table)


@token_app.command("rotate", help=message("help.rotate_token"))
def token_rotate(
    token_id: Annotated[str, typer.Argument(help=message("help.id"))],
    grace: Annotated[int, typer.Option("--grace", min=0, help=message("help.grace"))] = _DAY,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Print only the token that replaces another one, so that scripts can capture it."""
    from datetime import timedelta

    from tenants.access import issued_tokens

    with acting_for(tenant):
        _, token = issued_tokens.rotate(token_id, grace=timedelta(seconds=grace))
    typer.echo(token)


@token_app.command("revoke", help=message("help.revoke"))
def token_revoke(
    token: Annotated[str | None, typer.Argument(help=message("help.raw"))] = None,
    token_id: Annotated[str | None, typer.Option("--id", help=message("help.id"))] = None,
    subject: Annotated[str | None, typer.Option("--subject", help=message("help.subject"))] = None,
    every: Annotated[bool, typer.Option("--all", help=message("help.all"))] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Revoke tokens issued so far."""
    from pydantic import ValidationError

    from tenants.core.errors import Invalid
    from ui.api.token import RevocationRequest, revoked

    try:
        request = RevocationRequest(token=token, token_id=token_id, subject=subject, all=every)
    except ValidationError as unfit:
        raise Invalid("revocation_unnamed") from unfit
    with acting_for(tenant):
        done = revoked(request)
    if as_json:
        print_json({"kind": done.kind, "value": done.value, "until": done.until.isoformat()})
    else:
        typer.echo(message(f"revoked.{done.kind}", value=done.value, tenant=tenant))


@token_app.command("revoked", help=message("help.revoked"))
def token_revoked(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List the revocations."""
    with acting_for(tenant):
        from tenants.access import revocations

        listed = revocations.all()
    if as_json:
        print_json([{"kind": one.kind, "value": one.value, "until": one.until.isoformat()} for one in listed])
        return
    from rich.table import Table

    table = Table(message("column.kind"), message("column.value"), message("column.until"))
    for one in listed:
        table.add_row(one.kind, one.value, f"{one.until:%F %T}")
    terminal_console().print(table)


@keys_app.command("rotate", help=message("help.rotate"))
def keys_rotate(
    overlap: Annotated[int, typer.Option("--overlap", min=0, help=message("help.overlap"))] = 30 * _DAY,
) -> None:
    """Sign tokens with a new key from now on."""
    from settings import get_settings
    from tenants.access import keys

    typer.echo(message("rotated", kid=keys.rotate(get_settings(), overlap_seconds=overlap), seconds=overlap))


@keys_app.command("reseal", help=message("help.reseal"))
def keys_reseal() -> None:
    """Re-encrypt all secrets and tickets with a new key, or with the newest of `OPORA_DATA_KEYS`."""
    from settings import get_settings
    from tenants.privacy import resealing
    from tenants.storage import sealed

    if not get_settings().data_keys.get_secret_value():
        sealed.renew_own_key()
    typer.echo(message("resealed", count=resealing.reseal()))

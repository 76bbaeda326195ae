"""`opora token` and `opora keys`: tokens, revocations, and the keys for signing and encryption."""

from datetime import timedelta
from typing import Annotated

import typer

from pipelines.problems import refused_as
from settings import get_settings
from tenants.access import issued_tokens, keys, revocations
from tenants.access.issued_tokens import IssuedToken
from tenants.access.revocations import Revocation
from tenants.core import context
from tenants.privacy import resealing
from tenants.storage import sealed
from ui.api.token import RevocationRequest, revoked
from ui.cli.terminal import CommandGroup

tokens = CommandGroup("tokens")
signing_keys = CommandGroup("tokens")
message = tokens.message

_DAY = 86_400


def _print_tokens(listed: tuple[IssuedToken, ...]) -> None:
    rows = (
        (
            one.token_id,
            one.subject,
            " ".join(one.scopes),
            f"{one.issued_at:%F %R}",
            f"{one.used_at:%F %R}" if one.used_at else "–",
            f"{one.ends_at:%F %R}",
            message(f"state.{one.state}"),
        )
        for one in listed
    )
    tokens.print_columns(("id", "subject", "scopes", "issued", "used", "ends", "state"), rows)


def _print_revoked(done: Revocation) -> None:
    typer.echo(message(f"revoked.{done.kind}", value=done.value, tenant=context.current().tenant_id))


def _print_revocations(listed: tuple[Revocation, ...]) -> None:
    rows = ((one.kind, one.value, f"{one.until:%F %T}") for one in listed)
    tokens.print_columns(("kind", "value", "until"), rows)


@tokens.tenant_command("list", show=_print_tokens)
def token_list() -> tuple[IssuedToken, ...]:
    return issued_tokens.all()


@tokens.tenant_command("rotate", help_text=message("help.rotate_token"))
def token_rotate(
    token_id: Annotated[str, typer.Argument(help=message("help.id"))],
    grace: Annotated[int, typer.Option("--grace", min=0, help=message("help.grace"))] = _DAY,
) -> None:
    """Print only the token that replaces another one, so that scripts can capture it."""
    _, token = issued_tokens.rotate(token_id, grace=timedelta(seconds=grace))
    typer.echo(token)


@tokens.tenant_command("revoke", show=_print_revoked)
def token_revoke(
    token: Annotated[str | None, typer.Argument(help=message("help.raw"))] = None,
    token_id: Annotated[str | None, typer.Option("--id", help=message("help.id"))] = None,
    subject: Annotated[str | None, typer.Option("--subject", help=message("help.subject"))] = None,
    every: Annotated[bool, typer.Option("--all", help=message("help.all"))] = False,
) -> Revocation:
    with refused_as("revocation_unnamed"):
        request = RevocationRequest(token=token, token_id=token_id, subject=subject, all=every)
    return revoked(request)


@tokens.tenant_command("revoked", show=_print_revocations)
def token_revoked() -> tuple[Revocation, ...]:
    return revocations.all()


@signing_keys.installation_command("rotate")
def keys_rotate(
    overlap: Annotated[int, typer.Option("--overlap", min=0, help=message("help.overlap"))] = 30 * _DAY,
) -> None:
    typer.echo(message("rotated", kid=keys.rotate(get_settings(), overlap_seconds=overlap), seconds=overlap))


@signing_keys.installation_command("reseal")
def keys_reseal() -> None:
    if not get_settings().data_keys.get_secret_value():
        sealed.renew_own_key()
    typer.echo(message("resealed", count=resealing.reseal()))

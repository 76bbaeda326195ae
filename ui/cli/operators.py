"""`opora operator`: accounts of the desk."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from tenants.desk.operators import Operator


def message(key: str, **params: str | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"desk.command.{key}", terminal_locale(), **params)


operator_app = typer.Typer(cls=Group, help=message("operator"), no_args_is_help=True)
Login = Annotated[str, typer.Argument(help=message("login"))]
FromInput = Annotated[bool, typer.Option("--password-stdin", help=message("password_stdin"))]
Installation = Annotated[bool, typer.Option("--installation", help=message("installation"))]


@operator_app.command("add", help=message("add"))
def operator_add(
    login: Login,
    role: Annotated[str, typer.Option(help=message("role"))] = "operator",
    name: Annotated[str, typer.Option(help=message("name"))] = "",
    password_stdin: FromInput = False,
    installation: Installation = False,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Create an account."""
    from tenants.desk import operators

    with _within(tenant, installation=installation):
        if installation:
            added = operators.add_installation_admin(login, _password(from_input=password_stdin), name=name)
        else:
            known = operators.checked_role(role)
            added = operators.add(login, _password(from_input=password_stdin), role=known, name=name)
    typer.echo(message("added", login=added.login, role=text(f"desk.role.{added.role}", terminal_locale())))


@operator_app.command("list", help=message("list"))
def operator_list(
    installation: Installation = False, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False
) -> None:
    """List the accounts."""
    from tenants.desk import operators, sessions

    with _within(tenant, installation=installation):
        listed = operators.installation_admins() if installation else operators.all()
        signed_in = {one.login: len(sessions.of(one)) for one in listed}
    if as_json:
        print_json([_described(one) | {"sessions": signed_in[one.login]} for one in listed])
        return
    from rich.table import Table

    table = Table(*(message(f"column.{name}") for name in ("login", "role", "name", "sessions")))
    for one in listed:
        role = text(f"desk.role.{one.role}", terminal_locale())
        table.add_row(one.login, role, one.name, str(signed_in[one.login]))
    terminal_console().print(table)


@operator_app.command("set", help=message("set"))
def operator_set(
    login: Login,
    role: Annotated[str | None, typer.Option(help=message("role"))] = None,
    name: Annotated[str | None, typer.Option(help=message("name"))] = None,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Change an operator's role or name."""
    from tenants.desk import operators

    with acting_for(tenant):
        changed = operators.change(login, role=role, name=name)
    typer.echo(message("changed", login=changed.login, role=text(f"desk.role.{changed.role}", terminal_locale())))


@operator_app.command("remove", help=message("remove"))
def operator_remove(login: Login, installation: Installation = False, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Remove an operator's account."""
    from tenants.desk import operators

    with _within(tenant, installation=installation):
        if installation:
            operators.remove_installation_admin(login)
        else:
            operators.remove(login)
    typer.echo(message("removed", login=login))


@operator_app.command("password", help=message("password"))
def operator_password(
    login: Login,
    password_stdin: FromInput = False,
    installation: Installation = False,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Set a new password for an operator."""
    from tenants.desk import operators

    with _within(tenant, installation=installation):
        password = _password(from_input=password_stdin)
        if installation:
            operators.set_password_of_installation_admin(login, password)
        else:
            operators.set_password(login, password)
    typer.echo(message("password_set", login=login))


@operator_app.command("sign-out", help=message("sign_out"))
def operator_sign_out(login: Login, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """End all sessions of an operator."""
    from tenants.desk import operators, sessions

    with acting_for(tenant):
        ended = sessions.end_all(operators.get(login))
    typer.echo(message("signed_out", login=login, count=ended))


@contextmanager
def _within(tenant: str, *, installation: bool) -> Iterator[None]:
    """Act for a tenant, or without one for commands about the installation."""
    if installation:
        yield
        return
    with acting_for(tenant):
        yield


def _password(*, from_input: bool) -> str:
    """Read a password, typed twice or from standard input: never an argument, which other users could see."""
    if from_input:
        return sys.stdin.readline().rstrip("\r\n")
    entered: str = typer.prompt(
        message("prompt"), hide_input=True, confirmation_prompt=message("prompt_again"), err=True
    )
    return entered


def _described(operator: "Operator") -> dict[str, object]:
    return {
        "login": operator.login,
        "role": operator.role,
        "name": operator.name,
        "created_at": operator.created_at.isoformat(),
    }

"""`opora operator`: accounts of the desk."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.desk import operator_sessions, operators
from tenants.desk.operators import Operator
from ui.api.operators import OperatorPart
from ui.cli.terminal import DEFAULT_TENANT, CommandGroup, Json, TenantOption, acting_for, print_json

group = CommandGroup("desk.command")
message = group.message

Login = Annotated[str, typer.Argument(help=message("help.login"))]
FromInput = Annotated[bool, typer.Option("--password-stdin", help=message("help.password_stdin"))]
Installation = Annotated[bool, typer.Option("--installation", help=message("help.installation"))]


@group.installation_command("add")
def operator_add(
    login: Login,
    role: Annotated[str, typer.Option(help=message("help.role"))] = "operator",
    name: Annotated[str, typer.Option(help=message("help.name"))] = "",
    password_stdin: FromInput = False,
    installation: Installation = False,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    with _within(tenant, installation=installation):
        if installation:
            added = operators.add_installation_admin(login, _password(from_input=password_stdin), name=name)
        else:
            known = operators.checked_role(role)
            added = operators.add(login, _password(from_input=password_stdin), role=known, name=name)
    typer.echo(message("added", login=added.login, role=_role(added)))


@group.installation_command("list")
def operator_list(
    installation: Installation = False, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False
) -> None:
    with _within(tenant, installation=installation):
        listed = operators.installation_admins() if installation else operators.all()
        signed_in = {one.login: len(operator_sessions.of(one)) for one in listed}
    if as_json:
        parts = [OperatorPart.model_validate(one) for one in listed]
        print_json([part.model_dump(mode="json") | {"sessions": signed_in[part.login]} for part in parts])
        return
    rows = ((one.login, _role(one), one.name, signed_in[one.login]) for one in listed)
    group.print_columns(("login", "role", "name", "sessions"), rows)


@group.tenant_command("set")
def operator_set(
    login: Login,
    role: Annotated[str | None, typer.Option(help=message("help.role"))] = None,
    name: Annotated[str | None, typer.Option(help=message("help.name"))] = None,
) -> None:
    changed = operators.change(login, role=role, name=name)
    typer.echo(message("changed", login=changed.login, role=_role(changed)))


@group.installation_command("remove")
def operator_remove(login: Login, installation: Installation = False, tenant: TenantOption = DEFAULT_TENANT) -> None:
    with _within(tenant, installation=installation):
        operators.remove(login, installation=installation, even_last=True)
    typer.echo(message("removed", login=login))


@group.installation_command("password")
def operator_password(
    login: Login,
    password_stdin: FromInput = False,
    installation: Installation = False,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    with _within(tenant, installation=installation):
        password = _password(from_input=password_stdin)
        operators.set_password(login, password, installation=installation)
    typer.echo(message("password_set", login=login))


@group.tenant_command("sign-out")
def operator_sign_out(login: Login) -> None:
    typer.echo(message("signed_out", login=login, count=operator_sessions.end_all(operators.get(login))))


def _within(tenant: str, *, installation: bool) -> AbstractContextManager[object]:
    """Act for a tenant, or without one for commands about the installation."""
    return nullcontext() if installation else acting_for(tenant)


def _password(*, from_input: bool) -> str:
    """Read a password, typed twice or from standard input: never an argument, which other users could see."""
    if from_input:
        return sys.stdin.readline().rstrip("\r\n")
    entered: str = typer.prompt(
        message("prompt"), hide_input=True, confirmation_prompt=message("prompt_again"), err=True
    )
    return entered


def _role(operator: Operator) -> str:
    return text(f"desk.role.{operator.role}", terminal_locale())

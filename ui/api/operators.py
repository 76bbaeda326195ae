"""`/operators` over HTTP, for admins of a tenant: accounts of its desk."""

from datetime import datetime
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import BaseModel, Field

from pipelines.routes import OpenRouter
from tenants.desk import operator_sessions, operators
from tenants.desk.operators import TenantRole
from ui.passwords import Passwords

_ALL, _ONE = "/operators", "/operators/{login}"
_Password: TypeAlias = Annotated[str, Field(max_length=1_000)]


class NewOperator(BaseModel, extra="forbid"):
    """Account to create. `name` is the display name for customers; if empty, the local part of the login."""

    login: Annotated[str, Field(max_length=100)]
    password: _Password
    role: TenantRole = "operator"
    name: Annotated[str, Field(max_length=100)] = ""


class OperatorChange(BaseModel, extra="forbid"):
    """Changes to an operator; omitted fields stay unchanged."""

    role: TenantRole | None = None
    name: Annotated[str, Field(max_length=100)] | None = None


class NewPassword(BaseModel, extra="forbid"):
    """New password; ends all sessions of the operator."""

    password: _Password


class OperatorPart(BaseModel, from_attributes=True):
    """Operator without the password."""

    login: str
    role: str
    name: str
    created_at: datetime


def router(passwords: Passwords) -> OpenRouter:
    endpoints = OpenRouter("admin", limit=10_000, desk=True, tags=["operators"])

    @endpoints.get(_ALL)
    def list_operators() -> list[OperatorPart]:
        """List the accounts of this tenant's desk."""
        return [OperatorPart.model_validate(one) for one in operators.all()]

    @endpoints.post(_ALL, status_code=201)
    async def add_operator(body: NewOperator) -> OperatorPart:
        """Create an account. Logins are unique within a tenant."""
        add = partial(operators.add, body.login, body.password, role=body.role, name=body.name)
        return OperatorPart.model_validate(await passwords.change(add))

    @endpoints.patch(_ONE)
    def change_operator(login: str, body: OperatorChange) -> OperatorPart:
        """Change an operator's role or name, effective immediately."""
        return OperatorPart.model_validate(operators.change(login, role=body.role, name=body.name))

    @endpoints.delete(f"{_ONE}/sessions", status_code=204)
    def end_sessions(login: str) -> None:
        """Sign an operator out of all devices."""
        operator_sessions.end_all(operators.get(login))

    @endpoints.delete(_ONE, status_code=204)
    def remove_operator(login: str) -> None:
        """Remove an operator's account and sign them out immediately."""
        operators.remove(login)

    @endpoints.put(f"{_ONE}/password", status_code=204)
    async def set_password(login: str, body: NewPassword) -> None:
        """Set a new password for an operator and sign them out of all devices."""
        await passwords.change(partial(operators.set_password, login, body.password))

    return endpoints

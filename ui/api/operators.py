"""`/operators` over HTTP, for admins of a tenant: who may sign in to its desk."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from pipelines.gate import Route
from tenants.desk import operators, sessions
from tenants.desk.operators import Operator

_BODY_BYTES = 10_000
_ALL, _ONE = "/operators", "/operators/{login}"
_Password: TypeAlias = Annotated[str, Field(max_length=1_000)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewOperator(_Body):
    """A person who may sign in. `name` is what customers see; the login's beginning when empty."""

    login: Annotated[str, Field(max_length=100)]
    password: _Password
    role: Literal["operator", "editor", "admin"] = "operator"
    name: Annotated[str, Field(max_length=100)] = ""


class OperatorChange(_Body):
    """What to change of an operator; what is not given stays."""

    role: Literal["operator", "editor", "admin"] | None = None
    name: Annotated[str, Field(max_length=100)] | None = None


class NewPassword(_Body):
    """A new password, which ends all sessions of its operator."""

    password: _Password


class OperatorPart(BaseModel):
    """An operator, without the password."""

    login: str
    role: str
    name: str
    created_at: datetime


ROUTES = (
    Route("GET", _ALL, scope="admin", desk=True),
    Route("POST", _ALL, scope="admin", desk=True, body=NewOperator, limit=_BODY_BYTES),
    Route("PATCH", _ONE, scope="admin", desk=True, body=OperatorChange, limit=_BODY_BYTES),
    Route("DELETE", _ONE, scope="admin", desk=True),
    Route("DELETE", f"{_ONE}/sessions", scope="admin", desk=True),
    Route("PUT", f"{_ONE}/password", scope="admin", desk=True, body=NewPassword, limit=_BODY_BYTES),
)

router = APIRouter(tags=["operators"])


@router.get(_ALL)
def list_operators() -> list[OperatorPart]:
    """Who may sign in to the desk of this tenant."""
    return [operator_part(one) for one in operators.all()]


@router.post(_ALL, status_code=201)
def add_operator(body: NewOperator) -> OperatorPart:
    """Let a person sign in. A login is unique in the whole installation."""
    return operator_part(operators.add(body.login, body.password, role=body.role, name=body.name))


@router.patch(_ONE)
def change_operator(login: str, body: OperatorChange) -> OperatorPart:
    """Give a person another role or name, at once."""
    return operator_part(operators.change(login, role=body.role, name=body.name))


@router.delete(f"{_ONE}/sessions", status_code=204)
def end_sessions(login: str) -> None:
    """Sign a person out everywhere."""
    sessions.end_all(operators.get(login))


@router.delete(_ONE, status_code=204)
def remove_operator(login: str) -> None:
    """Take a person's access away; they are signed out at once."""
    operators.remove(login)


@router.put(f"{_ONE}/password", status_code=204)
def set_password(login: str, body: NewPassword) -> None:
    """Give a person a new password, which signs them out everywhere."""
    operators.set_password(login, body.password)


def operator_part(operator: Operator) -> OperatorPart:
    """An operator for admins."""
    return OperatorPart(login=operator.login, role=operator.role, name=operator.name, created_at=operator.created_at)

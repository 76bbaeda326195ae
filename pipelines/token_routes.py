"""`/tokens/revocations`: tokens of the tenant that are refused from now on. The gate has checked token and tenant."""

from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from pipelines.gate import Route
from settings import get_settings
from tenants import context, revocations
from tenants.errors import Invalid
from tenants.revocations import Kind, Revocation
from tenants.tokens import MAX_TOKEN_BYTES, identify

_PATH = "/tokens/revocations"
_BODY_BYTES = 20_000

router = APIRouter(tags=["tokens"])


class RevocationRequest(BaseModel):
    """What to refuse: one token, by itself or by its `jti`; all tokens of a subject; or all of the tenant's."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TOKEN_BYTES)] | None = None
    token_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    subject: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    all: bool = False

    @model_validator(mode="after")
    def _be_one(self) -> Self:
        if sum((self.token is not None, self.token_id is not None, self.subject is not None, self.all)) != 1:
            raise ValueError("one of token, token_id, subject, all")
        return self


class RevocationPart(BaseModel):
    """Tokens of this kind and value that were issued until a moment are refused."""

    kind: Kind
    value: str
    until: datetime


class RevocationsAnswer(BaseModel):
    """All that is refused, newest first."""

    revocations: tuple[RevocationPart, ...]


ROUTES = (
    Route("GET", _PATH, scope="admin"),
    Route("POST", _PATH, scope="admin", body=RevocationRequest, limit=_BODY_BYTES),
)


@router.get(_PATH)
def list_revocations() -> RevocationsAnswer:
    """What is refused."""
    return RevocationsAnswer(revocations=tuple(map(_part, revocations.all())))


@router.post(_PATH)
def revoke(body: RevocationRequest) -> RevocationPart:
    """Refuse tokens issued so far; every replica hears of it within seconds."""
    return _part(revoked(body))


def revoked(request: RevocationRequest) -> Revocation:
    """Refuse what a request names. Raises `Invalid` (`token_foreign`) for another tenant's token."""
    if request.token is not None:
        tenant_id, token_id = identify(request.token, get_settings())
        if tenant_id != context.current().tenant_id:
            raise Invalid("token_foreign")
        return revocations.revoke("token", token_id)
    if request.token_id is not None:
        return revocations.revoke("token", request.token_id)
    return revocations.revoke("subject", request.subject) if request.subject else revocations.revoke("tenant")


def _part(revocation: Revocation) -> RevocationPart:
    return RevocationPart(kind=revocation.kind, value=revocation.value, until=revocation.until)

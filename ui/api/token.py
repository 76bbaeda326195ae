"""`/tokens`: the tenant's tokens and revocations. The gate has checked token and tenant."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from pipelines.routes import OpenRouter
from settings import get_settings
from tenants.access import issued_tokens, revocations
from tenants.access.issued_tokens import GRACE, IssuedToken
from tenants.access.revocations import Revocation
from tenants.access.tokens import MAX_TOKEN_BYTES, MAX_TTL_SECONDS, identify
from tenants.core import context
from tenants.core.context import Scope
from tenants.core.errors import Invalid

_TOKENS = "/tokens"
_PATH = f"{_TOKENS}/revocations"

router = OpenRouter("admin", limit=20_000, tags=["tokens"])


class TokenRequest(BaseModel, extra="forbid"):
    """Token for a person or a system."""

    subject: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=10)]
    ttl_seconds: Annotated[int, Field(ge=1, le=MAX_TTL_SECONDS)] = 3_600


class RotationRequest(BaseModel, extra="forbid"):
    """Time that the replaced token stays valid, unless it expires sooner."""

    grace_seconds: Annotated[int, Field(ge=0, le=MAX_TTL_SECONDS)] = int(GRACE.total_seconds())


class TokensAnswer(BaseModel):
    """Issued tokens, valid ones first."""

    tokens: tuple[IssuedToken, ...]


class NewToken(BaseModel):
    """Newly issued token, which no other response contains, and its metadata."""

    token: str
    issued: IssuedToken


class RevocationRequest(BaseModel, extra="forbid"):
    """Tokens to revoke: one token, by itself or by its `jti`; all tokens of a subject; or all of the tenant's."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TOKEN_BYTES)] | None = None
    token_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    subject: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None
    all: bool = False

    @model_validator(mode="after")
    def _be_one(self) -> Self:
        if sum((self.token is not None, self.token_id is not None, self.subject is not None, self.all)) != 1:
            raise ValueError("one of token, token_id, subject, all")
        return self


class RevocationsAnswer(BaseModel):
    """All revocations, newest first."""

    revocations: tuple[Revocation, ...]


@router.get(_TOKENS)
def list_tokens() -> TokensAnswer:
    """List the issued tokens."""
    return TokensAnswer(tokens=issued_tokens.all())


@router.post(_TOKENS, status_code=201)
def issue_token(body: TokenRequest) -> NewToken:
    """Issue a token."""
    issued, token = issued_tokens.issue(subject=body.subject, scopes=body.scopes, ttl_seconds=body.ttl_seconds)
    return NewToken(token=token, issued=issued)


@router.post(f"{_TOKENS}/{{token_id}}/rotate", status_code=201)
def rotate_token(token_id: str, body: RotationRequest) -> NewToken:
    """Replace a token with a new one; both are valid for the time given in the request."""
    issued, token = issued_tokens.rotate(token_id, grace=timedelta(seconds=body.grace_seconds))
    return NewToken(token=token, issued=issued)


@router.get(_PATH)
def list_revocations() -> RevocationsAnswer:
    """List the revocations."""
    return RevocationsAnswer(revocations=revocations.all())


@router.post(_PATH)
def revoke(body: RevocationRequest) -> Revocation:
    """Revoke tokens issued so far; every replica applies it within seconds."""
    return revoked(body)


def revoked(request: RevocationRequest) -> Revocation:
    """Revoke the tokens named in a request. Raises `Invalid` (`token_foreign`) for another tenant's token."""
    if request.token is not None:
        tenant_id, token_id = identify(request.token, get_settings())
        if tenant_id != context.current().tenant_id:
            raise Invalid("token_foreign")
        return revocations.revoke("token", token_id)
    if request.token_id is not None:
        return revocations.revoke("token", request.token_id)
    return revocations.revoke("subject", request.subject) if request.subject else revocations.revoke("tenant")

"""`/settings`: a tenant's policy and the history of changes."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from pipelines.ask import profiles
from pipelines.routes import OpenRouter
from tenants.accounts import policy, settings_history
from tenants.accounts.policy import Policy
from tenants.accounts.settings_history import Area, SettingChange
from tenants.desk import sso_providers
from tenants.desk.operators import TenantRole
from tenants.desk.sso_providers import Provider

_POLICY, _SIGN_IN = "/settings/policy", "/settings/sign-in"


class PolicyChange(BaseModel, extra="forbid"):
    """Rules to set. Null resets a nullable rule to the installation's value; omitted rules stay unchanged.

    `version` is the policy version that the caller saw; if omitted, the change applies to any version.
    """

    set: dict[str, object] = Field(description="Fields of the policy.")
    version: Annotated[str, Field(max_length=32)] = ""


class PolicyAnswer(BaseModel):
    """Effective policy."""

    policy: Policy
    version: str


class ChangesAnswer(BaseModel):
    """Changes of settings, newest first."""

    changes: tuple[SettingChange, ...]


class ProviderPart(BaseModel):
    """Identity provider, without the client secret."""

    issuer: str
    client_id: str
    has_secret: bool
    domains: tuple[str, ...]
    role_claim: str
    roles: dict[str, TenantRole]
    default_role: TenantRole | None


class SignInAnswer(BaseModel):
    """Sign-in methods of the desk, besides passwords."""

    provider: ProviderPart | None


router = OpenRouter("admin", limit=1_000_000, tags=["settings"])


@router.get(_POLICY)
def read_policy() -> PolicyAnswer:
    """Return the effective policy."""
    return _policy_answer(policy.latest())


@router.patch(_POLICY)
def change_policy(body: PolicyChange) -> PolicyAnswer:
    """Set some rules. Returns 409 if the policy has a newer version than `version`."""
    return _policy_answer(profiles.apply_policy(body.set, body.version))


@router.get("/settings/changes")
def list_changes(area: Area | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 100) -> ChangesAnswer:
    """List the changes of settings, newest first: fewer than `limit` if their values are large."""
    return ChangesAnswer(changes=settings_history.latest(area, limit=limit))


@router.get(_SIGN_IN)
def read_sign_in() -> SignInAnswer:
    """Return the identity provider for signing in to the desk; null means passwords only."""
    return sign_in_answer()


@router.put(_SIGN_IN)
def set_sign_in(body: Provider) -> SignInAnswer:
    """Set the identity provider. If `client_secret` is omitted, the stored one is kept for the same client."""
    sso_providers.put(body)
    return sign_in_answer()


@router.delete(_SIGN_IN)
def remove_sign_in() -> SignInAnswer:
    """Remove the identity provider: passwords only."""
    sso_providers.remove()
    return sign_in_answer()


def sign_in_answer() -> SignInAnswer:
    provider = sso_providers.own()
    if provider is None:
        return SignInAnswer(provider=None)
    shown = provider.model_dump(exclude={"client_secret"})
    return SignInAnswer(provider=ProviderPart(**shown, has_secret=bool(provider.secret)))


def _policy_answer(now: Policy) -> PolicyAnswer:
    return PolicyAnswer(policy=now, version=policy.version_of(now))

"""`/settings`: a tenant's policy, and who has changed which setting."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from pipelines.ask.settings_changes import undo
from pipelines.gate import Route
from tenants.accounts import changes, policy
from tenants.accounts.changes import Area, Change
from tenants.accounts.policy import Policy
from tenants.desk import providers
from tenants.desk.providers import Provider, TenantRole

_POLICY, _CHANGES = "/settings/policy", "/settings/changes"
_UNDO = "/settings/changes/{change_id}/undo"
_SIGN_IN = "/settings/sign-in"
_BODY_BYTES = 1_000_000


class PolicyChange(BaseModel):
    """Rules to set; null gives a rule that may be empty back to the installation, others stay as they are.

    `version` is that of the policy as the caller has seen it; empty: whatever it has become.
    """

    model_config = ConfigDict(extra="forbid")

    set: dict[str, object] = Field(description="Fields of the policy.")
    version: Annotated[str, Field(max_length=32)] = ""


class PolicyAnswer(BaseModel):
    """The policy in force."""

    policy: Policy
    version: str


class ChangePart(BaseModel):
    """A change of settings. `before` and `after` hold the fields that differ; secrets are never among them."""

    change_id: str
    at: str
    by: str
    area: Area
    act: str
    about: str
    before: dict[str, object]
    after: dict[str, object]


class ChangesAnswer(BaseModel):
    """Changes of settings, newest first."""

    changes: tuple[ChangePart, ...]


class ProviderPart(BaseModel):
    """An identity provider, without the client's secret."""

    issuer: str
    client_id: str
    has_secret: bool
    domains: tuple[str, ...]
    role_claim: str
    roles: dict[str, TenantRole]
    default_role: TenantRole | None


class SignInAnswer(BaseModel):
    """How people sign in to the desk besides by password."""

    provider: ProviderPart | None


ROUTES = (
    Route("GET", _POLICY, scope="admin"),
    Route("PATCH", _POLICY, scope="admin", body=PolicyChange, limit=_BODY_BYTES),
    Route("GET", _CHANGES, scope="admin"),
    Route("POST", _UNDO, scope="admin"),
    Route("GET", _SIGN_IN, scope="admin"),
    Route("PUT", _SIGN_IN, scope="admin", body=Provider, limit=_BODY_BYTES),
    Route("DELETE", _SIGN_IN, scope="admin"),
)

router = APIRouter(tags=["settings"])


@router.get(_POLICY)
def read_policy() -> PolicyAnswer:
    """The policy in force."""
    return _policy_answer(policy.latest())


@router.patch(_POLICY)
def change_policy(body: PolicyChange) -> PolicyAnswer:
    """Set some rules; 409 where the policy is no longer of the `version`."""
    return _policy_answer(policy.apply(body.set, body.version))


@router.get(_CHANGES)
def list_changes(area: Area | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 100) -> ChangesAnswer:
    """Who has changed what, newest first."""
    return ChangesAnswer(changes=tuple(map(change_part, changes.latest(area, limit=limit))))


@router.post(_UNDO)
def undo_change(change_id: str) -> ChangePart:
    """Give what was changed the values from before. It is a change of its own."""
    return change_part(undo(change_id))


@router.get(_SIGN_IN)
def read_sign_in() -> SignInAnswer:
    """The identity provider by which people sign in to the desk; null: by password alone."""
    return sign_in_answer()


@router.put(_SIGN_IN)
def set_sign_in(body: Provider) -> SignInAnswer:
    """Have people sign in by this provider. Without `client_secret` the stored one stays, for the same client."""
    providers.put(body)
    return sign_in_answer()


@router.delete(_SIGN_IN)
def remove_sign_in() -> SignInAnswer:
    """Have people sign in by password alone."""
    providers.remove()
    return sign_in_answer()


def sign_in_answer() -> SignInAnswer:
    """The provider as callers see it."""
    provider = providers.own()
    if provider is None:
        return SignInAnswer(provider=None)
    shown = provider.model_dump(exclude={"client_secret"})
    return SignInAnswer(provider=ProviderPart(**shown, has_secret=bool(provider.secret)))


def change_part(change: Change) -> ChangePart:
    """A change as callers see it."""
    return ChangePart(
        change_id=change.change_id,
        at=change.at.isoformat(),
        by=change.by,
        area=change.area,
        act=change.act,
        about=change.about,
        before=dict(change.before),
        after=dict(change.after),
    )


def _policy_answer(now: Policy) -> PolicyAnswer:
    return PolicyAnswer(policy=now, version=policy.version_of(now))

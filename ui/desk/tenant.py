"""Tenant administration: how much data each tenant has, but never its content, and the invitation link for a new
tenant's first admin.
"""

from typing import Annotated, TypeAlias

from fastapi import Form, Query, Request
from starlette.responses import Response

from components.language.texts import LOCALES
from pipelines import desk_gate
from pipelines.connections import limited_as, public_url
from pipelines.routes import OpenRouter, opens
from tenants.access import quotas
from tenants.accounts import policy, registry
from tenants.accounts.registry import Registry
from tenants.core.errors import Conflict, Invalid, OporaError
from tenants.desk import invitations, operator_sessions, operators
from tenants.insight import totals
from tenants.insight.totals import TenantSize
from tenants.privacy import removal
from ui.desk.rendering import Desk, back_to, or_again
from ui.passwords import Passwords

_ALL, _ONE = "/desk/tenants", "/desk/tenants/one"
_INVITATION = "/desk/invitation/{secret}"
_Short: TypeAlias = Annotated[str, Form(max_length=500)]
_NO_NUL = r"^[^\x00]*$"
_Id: TypeAlias = Annotated[str, Form(max_length=255, pattern=_NO_NUL)]


def router(desk: Desk, passwords: Passwords) -> OpenRouter:
    endpoints = OpenRouter(desk_gate.INSTALLATION, limit=20_000, page=True, include_in_schema=False)

    def listed(refused: OporaError | None = None, *, done: str = "", **given: str) -> Response:
        return desk.page(
            "tenants/list.html",
            refused,
            section="tenants",
            tenants=Registry().list(),
            sizes=totals.by_tenant(),
            nothing=TenantSize(),
            state_of=totals.state,
            locales=LOCALES,
            given=given or {"locale": desk.settings.default_locale},
            done=done,
        )

    @endpoints.get(_ALL)
    def show_tenants(done: Annotated[str, Query(max_length=20)] = "") -> Response:
        return listed(done=done)

    @endpoints.post(f"{_ALL}/add")
    @or_again(listed, Invalid)
    def add_tenant(tenant_id: _Id = "", name: _Short = "", locale: _Short = "") -> Response:
        added = Registry().add(tenant_id, name=name.strip(), locale=locale if locale in LOCALES else "")
        return _one(desk, added.tenant_id, link=_link(added.tenant_id))

    @endpoints.get(_ONE)
    def show_tenant(id: Annotated[str, Query(max_length=255, pattern=_NO_NUL)] = "") -> Response:
        return _one(desk, id)

    @endpoints.post(f"{_ALL}/suspend")
    def suspend(id: _Id = "") -> Response:
        registry.suspend(id, operator_sessions.current().operator.login)
        return _one(desk, id, done="suspended")

    @endpoints.post(f"{_ALL}/resume")
    def resume(id: _Id = "") -> Response:
        registry.resume(id, operator_sessions.current().operator.login)
        return _one(desk, id, done="resumed")

    @endpoints.post(f"{_ALL}/invite")
    @or_again(lambda refused, id: _one(desk, id, refused), Conflict)
    def invite(id: _Id = "") -> Response:
        return _one(desk, id, link=_link(id))

    @endpoints.post(f"{_ALL}/remove")
    @or_again(lambda refused, id, typed: _one(desk, id, refused, typed=typed), Invalid)
    def remove(id: _Id = "", typed: _Id = "") -> Response:
        removal.remove_confirmed(id, typed)
        return back_to(f"{_ALL}?done=removed")

    def invitation(
        secret: str, refused: OporaError | None = None, login: str = "", name: str = "", **_: object
    ) -> Response:
        return desk.public(
            "tenants/invitation.html",
            refused,
            secret=secret,
            tenant=invitations.check(secret),
            login=login,
            name=name,
            least=operators.MIN_PASSWORD,
        )

    @endpoints.get(_INVITATION)
    @opens(scope=None)
    def show_invitation(secret: str) -> Response:
        return invitation(secret)

    @endpoints.post(_INVITATION)
    @opens(scope=None)
    @or_again(lambda refused, **typed: invitation(refused=refused, **typed), Invalid)
    async def accept(
        request: Request, secret: str, login: _Short = "", name: _Short = "", password: _Short = ""
    ) -> Response:
        def begin() -> Response:
            admin = invitations.accept(secret, login=login, password=password, name=name)
            return desk_gate.signed_in(back_to("/desk/welcome"), request, admin)

        return await passwords.sign_in(limited_as(request), begin)

    return endpoints


def _one(
    desk: Desk, tenant_id: str, refused: OporaError | None = None, *, link: str = "", done: str = "", typed: str = ""
) -> Response:
    tenant = Registry().get(tenant_id)
    rules = policy.of(tenant)
    per_minute, per_day = quotas.limits(rules, desk.settings)
    return desk.page(
        "tenants/one.html",
        refused,
        section="tenants",
        tenant=tenant,
        size=totals.of(tenant_id),
        state_of=totals.state,
        rules=rules,
        per_minute=per_minute,
        per_day=per_day,
        link=link,
        done=done,
        typed=typed,
    )


def _link(tenant_id: str) -> str:
    return f"{public_url()}/desk/invitation/{invitations.invite(tenant_id)}"

"""Sign-in to the desk by a tenant's identity provider: redirect and callback.

Threats and defences:

- another site sends an operator's browser here, and so signs it in to an account of the attacker: a request from
  another site gets a page with a link first;
- a tenant's provider sends the browser on to that of another tenant, to receive its code (mix-up, RFC 9700, 4.4): each
  tenant has its own callback, which only its own attempts may use.
"""

from functools import partial
from typing import Annotated, TypeAlias
from urllib.parse import quote, urlencode

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from pipelines import desk_gate
from pipelines.connections import limited_as, public_url
from pipelines.pools import Pool
from pipelines.routes import OpenRouter
from tenants.access.quotas import RateLimiter
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, Forbidden, NotFound
from tenants.desk import operator_sessions, sso_providers
from tenants.desk.sso_providers import Provider
from ui.desk.account import ATTEMPTS_OF_ADDRESS, NO_TENANT
from ui.desk.oidc import SECONDS_TO_SIGN_IN, Attempt, SignIn, opened
from ui.desk.rendering import SEE_OTHER, Desk, back_to, home

COOKIE = "__Host-opora-sign-in"
_CHOOSE, _BEGIN, _CALLBACK = "/desk/sso", "/desk/sso/{tenant_id}", "/desk/sso-callback/{tenant_id}"
_ASKED_AT_ONCE = 4
"""Concurrent requests to one tenant's provider."""
_Short: TypeAlias = Annotated[str, Query(max_length=500)]


def router(desk: Desk, limiter: RateLimiter) -> OpenRouter:
    endpoints = OpenRouter(None, page=True, include_in_schema=False)
    signing_in = SignIn()
    providers_asked = Pool("sign-in", 16)

    @endpoints.get(_CHOOSE)
    def choose(tenant: _Short = "", next: _Short = "") -> Response:
        """Return a page with a link to the provider, because a form may not lead to another site."""
        provider_of(tenant)
        return desk.public("sso.html", tenant_id=tenant, next=desk_gate.local(next, ""))

    @endpoints.get(_BEGIN)
    async def begin(request: Request, tenant_id: str, next: _Short = "") -> Response:
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return back_to(f"{_CHOOSE}?{urlencode({'tenant': tenant_id} | ({'next': next} if next else {}))}")
        await admit(request)
        return await providers_asked.run(
            {tenant_id: _ASKED_AT_ONCE}, partial(send_there, tenant_id, desk_gate.local(next, ""))
        )

    @endpoints.get(_CALLBACK)
    async def come_back(
        request: Request,
        tenant_id: str,
        state: _Short = "",
        code: Annotated[str, Query(max_length=4_000)] = "",
        error: _Short = "",
        iss: Annotated[str | None, Query(max_length=2_000)] = None,
    ) -> Response:
        await admit(request)
        try:
            attempt = opened(desk_gate.cookie_of(request.headers, COOKIE), tenant_id, state)
            response = await providers_asked.run(
                {tenant_id: _ASKED_AT_ONCE}, partial(sign_in, request, attempt, code, error, iss)
            )
        except CallerError as refused:
            response = desk.error(refused)
        # The browser forgets an attempt, whatever its result; its code is valid only once.
        response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
        return response

    async def admit(request: Request) -> None:
        address = limited_as(request)
        per_minute = desk.settings.sign_ins_per_minute * ATTEMPTS_OF_ADDRESS
        with acting_as(NO_TENANT):
            await limiter.admit_each({f"single sign-ons from {address}": per_minute})

    def send_there(tenant_id: str, next: str) -> Response:
        provider = provider_of(tenant_id)
        with acting_as(Tenant(tenant_id, "sign-in")):
            target, attempt = signing_in.begin(provider, redirect_uri(tenant_id), next)
        response = RedirectResponse(target, SEE_OTHER)
        response.set_cookie(
            COOKIE,
            attempt.sealed(),
            max_age=SECONDS_TO_SIGN_IN,
            path="/",
            secure=True,
            httponly=True,
            samesite="lax",
        )
        return response

    def sign_in(request: Request, attempt: Attempt, code: str, error: str, issuer: str | None) -> Response:
        if error or not code:
            raise Forbidden("sso_denied")
        provider = provider_of(attempt.tenant_id)
        with acting_as(Tenant(attempt.tenant_id, "sign-in")):
            operator = signing_in.finish(provider, attempt, code, redirect_uri(attempt.tenant_id), issuer)
        operator_sessions.end_by_secret(desk_gate.presented(request.headers))
        return desk_gate.signed_in(back_to(desk_gate.local(attempt.next, home(operator))), request, operator)

    return endpoints


def redirect_uri(tenant_id: str) -> str:
    return f"{public_url()}{_CALLBACK.format(tenant_id=quote(tenant_id, safe=''))}"


def provider_of(tenant_id: str) -> Provider:
    if not Registry().exists(tenant_id):
        raise NotFound("sso_unavailable")
    with acting_as(Tenant(tenant_id, "sign-in")):
        provider = sso_providers.own()
    if provider is None:
        raise NotFound("sso_unavailable")
    return provider

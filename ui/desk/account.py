"""Signing in and out, the operator's own account, and the people of a tenant."""

import asyncio
from functools import partial
from typing import Annotated, TypeAlias
from urllib.parse import quote

from fastapi import Form, Query, Request
from starlette.responses import Response

from pipelines import desk_gate
from pipelines.connections import limited_as, public_url
from pipelines.routes import OpenRouter, opens
from tenants.access.quotas import RateLimiter
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, CallerError, Invalid, OporaError, RateLimited, Unauthenticated
from tenants.desk import operator_sessions, operators
from tenants.desk.operators import TENANT_ROLES, Operator
from ui.desk.rendering import Desk, back_to, home, or_again
from ui.passwords import Passwords

NO_TENANT = Tenant("-", "")
"""Tenant id for counting sign-in attempts; no real tenant can have it."""
ATTEMPTS_OF_ADDRESS = 10
"""Attempts per address, as a multiple of those per login: a whole office may share one address."""

_Short: TypeAlias = Annotated[str, Form(max_length=200)]
_Company: TypeAlias = Annotated[str, Form(max_length=255)]
_Password: TypeAlias = Annotated[str, Form(max_length=1_000)]


def router(desk: Desk, limiter: RateLimiter, passwords: Passwords) -> OpenRouter:
    endpoints = OpenRouter("admin", limit=20_000, page=True, include_in_schema=False)
    _add_signing_in(endpoints, desk, limiter, passwords)
    _add_account(endpoints, desk, limiter, passwords)
    _add_people(endpoints, desk, passwords)

    return endpoints


def _add_signing_in(endpoints: OpenRouter, desk: Desk, limiter: RateLimiter, passwords: Passwords) -> None:
    def form(company: str, next: str, refused: OporaError | None = None, **values: object) -> Response:
        return desk.public(
            "sign_in.html",
            refused,
            company=company,
            asks_company=operators.has_several_tenants(),
            nobody=not operators.anybody(),
            next=desk_gate.local(next, ""),
            **values,
        )

    def begin(request: Request, operator: Operator, next: str) -> Response:
        response = desk_gate.signed_in(back_to(desk_gate.local(next, home(operator))), request, operator)
        operator_sessions.end_by_secret(desk_gate.presented(request.headers))
        return response

    @endpoints.get(desk_gate.SIGN_IN)
    @opens(scope=None)
    def show_sign_in(
        request: Request,
        company: Annotated[str, Query(max_length=255)] = "",
        next: Annotated[str, Query(max_length=500)] = "",
    ) -> Response:
        return form(company or desk_gate.company_of(request.headers), next)

    @endpoints.post(desk_gate.SIGN_IN)
    @opens(scope=None)
    async def sign_in(
        request: Request, login: _Short = "", password: _Password = "", company: _Company = "", next: _Short = ""
    ) -> Response:
        address, company = limited_as(request), company.strip()
        try:
            await _admit(limiter, desk.settings.sign_ins_per_minute, login, address, company)
            operator = await passwords.sign_in(address, partial(operators.authenticate, login, password, company))
            return await asyncio.to_thread(begin, request, operator, next)
        except (Unauthenticated, RateLimited, Busy) as refused:
            return await asyncio.to_thread(form, company, next, refused, login=login)

    @endpoints.post("/desk/sign-out")
    @opens(scope=desk_gate.SIGNED_IN)
    def sign_out() -> Response:
        signed_in = operator_sessions.current()
        operator_sessions.end(signed_in.operator, signed_in.session_id)
        return desk_gate.without_session(back_to(desk_gate.SIGN_IN))


def _add_account(endpoints: OpenRouter, desk: Desk, limiter: RateLimiter, passwords: Passwords) -> None:
    def account(refused: OporaError | None = None) -> Response:
        signed_in = operator_sessions.current()
        return desk.page(
            "account.html", refused, sessions=operator_sessions.of(signed_in.operator), this=signed_in.session_id
        )

    @endpoints.get("/desk/account")
    @opens(scope=desk_gate.SIGNED_IN)
    def show_account() -> Response:
        return account()

    @endpoints.post("/desk/account/password")
    @opens(scope=desk_gate.SIGNED_IN)
    async def change_password(request: Request, password: _Password = "", new_password: _Password = "") -> Response:
        operator = operator_sessions.current().operator
        address = limited_as(request)
        # Someone who has taken over a session must not be able to guess the password here.
        await _admit(limiter, desk.settings.sign_ins_per_minute, operator.login, address, operator.tenant_id or "")

        def change() -> Response:
            try:
                verified = operators.check_password(operator, password)
                installation = operator.tenant_id is None
                changed = operators.set_password(
                    operator.login, new_password, installation=installation, verified=verified
                )
            except CallerError as refused:
                # A mistake in the form, even a wrong password: the session goes on.
                return account(Invalid(refused.code, **refused.params))
            # All sessions have ended, including this one: continue with a new one.
            return desk_gate.signed_in(back_to("/desk/account"), request, changed)

        return await passwords.change(change)

    @endpoints.post("/desk/account/sessions/end")
    @opens(scope=desk_gate.SIGNED_IN)
    def end_session(session_id: _Short) -> Response:
        operator_sessions.end(operator_sessions.current().operator, session_id)
        return back_to("/desk/account")

    @endpoints.post("/desk/account/sessions/end-all")
    @opens(scope=desk_gate.SIGNED_IN)
    def end_all_sessions() -> Response:
        operator_sessions.end_all(operator_sessions.current().operator)
        return desk_gate.without_session(back_to(desk_gate.SIGN_IN))


def _add_people(endpoints: OpenRouter, desk: Desk, passwords: Passwords) -> None:
    def people(refused: OporaError | None = None, login: str = "", name: str = "", role: str = "") -> Response:
        return desk.page(
            "people.html",
            refused,
            section="people",
            people=operators.all(),
            roles=TENANT_ROLES,
            address=_sign_in_address(),
            login=login,
            name=name,
            role=role,
        )

    @endpoints.get("/desk/people")
    def show_people() -> Response:
        return people()

    again = or_again(lambda refused, **_: people(refused), Invalid)

    @endpoints.post("/desk/people/add")
    @or_again(lambda refused, password, **typed: people(refused, **typed), Invalid)  # noqa: ARG005 - not shown
    async def add_person(
        login: _Short = "", password: _Password = "", role: _Short = "operator", name: _Short = ""
    ) -> Response:
        add = partial(operators.add, login, password, role=operators.checked_role(role), name=name)
        await passwords.change(add)
        return back_to("/desk/people")

    @endpoints.post("/desk/people/change")
    @again
    def change_person(login: _Short, role: _Short = "", name: _Short = "") -> Response:
        operators.change(login, role=role, name=name)
        return back_to("/desk/people")

    @endpoints.post("/desk/people/sign-out")
    def sign_person_out(login: _Short) -> Response:
        operator_sessions.end_all(operators.get(login))
        return back_to("/desk/people")

    @endpoints.post("/desk/people/remove")
    @again
    def remove_person(login: _Short) -> Response:
        if operators.normal_login(login) == operator_sessions.current().operator.login:
            raise Invalid("operator_oneself")
        operators.remove(login)
        return back_to("/desk/people")

    @endpoints.post("/desk/people/password")
    @again
    async def set_password(login: _Short, password: _Password = "") -> Response:
        await passwords.change(partial(operators.set_password, login, password))
        return back_to("/desk/people")


def _sign_in_address() -> str:
    address = f"{public_url()}{desk_gate.SIGN_IN}"
    if not operators.has_several_tenants():
        return address
    return f"{address}?company={quote(context.current().tenant_id, safe='')}"


async def _admit(limiter: RateLimiter, most: int, login: str, address: str, company: str) -> None:
    # Where only one tenant has operators, its name may be left out, and both spellings are one account.
    place = await asyncio.to_thread(operators.place_of, company)
    account = f"sign-in as {operators.normal_login(login)} of {place}"
    with acting_as(NO_TENANT):
        await limiter.admit_each(
            {
                f"{account} from {address}": most,
                # Others who know a login must not keep its owner out from one address.
                account: most * ATTEMPTS_OF_ADDRESS,
                f"sign-ins from {address}": most * ATTEMPTS_OF_ADDRESS,
            }
        )

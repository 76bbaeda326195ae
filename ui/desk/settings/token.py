"""Tokens of programs that work for the tenant: issue, replace, revoke. A token is shown once."""

from collections.abc import Container, Mapping
from datetime import timedelta
from typing import get_args

from starlette.datastructures import FormData
from starlette.responses import Response

from pipelines import problems
from pipelines.routes import OpenRouter
from tenants.access import issued_tokens
from tenants.access.issued_tokens import IssuedToken
from tenants.core.context import Scope
from tenants.core.errors import Conflict, Invalid, OporaError
from ui.desk.rendering import Desk, or_again
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Form, Typed

_ALL = f"{pages.ROOT}/tokens"
GRACES = (0, 1, 24, 24 * 7)
"""Choices for how many hours a replaced token stays valid."""
_DAY_SECONDS = 86_400
_DAYS = 90
_FAULTY_FIELDS = {"subject_invalid": "subject", "scope_unknown": "scopes", "ttl_invalid": "days"}

_FORM = Form(Field("subject", required=True), Field("days", "number", required=True))


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_ALL)
    def show_tokens(saved: pages.Saved = "") -> Response:
        return page(saved=saved)

    @endpoints.post(_ALL)
    @or_again(lambda refused, form: page(form, refused), Invalid)
    def issue_token(form: Typed) -> Response:
        seconds = _seconds(forms.line(form, "days"))
        subject = forms.line(form, "subject")
        return page(issued=issued_tokens.issue(subject=subject, scopes=_scopes(form), ttl_seconds=seconds))

    @endpoints.post(f"{_ALL}/rotate")
    @or_again(lambda refused, **_: page(refused=refused), Conflict)
    def rotate_token(form: Typed) -> Response:
        hours = next((hours for hours in GRACES if str(hours) == forms.line(form, "hours")), GRACES[-1])
        return page(issued=issued_tokens.rotate(forms.line(form, "token_id"), grace=timedelta(hours=hours)))

    @endpoints.post(f"{_ALL}/revoke")
    def revoke_token(form: Typed) -> Response:
        issued_tokens.revoke(forms.line(form, "token_id"))
        return pages.saved(_ALL, "revoked")

    def page(
        form: FormData | None = None,
        refused: OporaError | None = None,
        *,
        issued: tuple[IssuedToken, str] | None = None,
        saved: str = "",
    ) -> Response:
        known = issued_tokens.all()
        unscoped = refused is not None and refused.code == "scope_unknown"
        return pages.page(
            desk,
            "tokens",
            "tokens.html",
            refused,
            working=[one for one in known if one.state in ("valid", "ending")],
            over=[one for one in known if one.state in ("revoked", "expired")],
            fields=_FORM.shown({"days": _DAYS}, form, refused, _faults)[1],
            scopes=get_args(Scope),
            chosen=_scopes(form) if form is not None else (),
            issued=issued,
            graces=GRACES,
            scope_fault=forms.fault_text("scope_unknown") if unscoped else "",
            fault=problems.detail(refused) if refused and form is None else "",
            saved=saved,
        )

    return endpoints


def _scopes(form: FormData) -> list[Scope]:
    return [scope for scope in get_args(Scope) if forms.flag(form, scope)]


def _faults(refused: OporaError, _names: Container[str]) -> Mapping[str, str]:
    return {_FAULTY_FIELDS[refused.code]: forms.fault_text(refused.code)}


def _seconds(days: str) -> int:
    with Invalid("ttl_invalid").instead_of(ValueError):
        return int(forms.number(days, _DAY_SECONDS))

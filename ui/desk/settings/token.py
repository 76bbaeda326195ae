"""Tokens of programs that work for the tenant: issue, replace, revoke. A token is shown once."""

from collections.abc import Collection
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
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Fields, Typed
from ui.desk.view import Desk, or_again

_ALL = f"{pages.ROOT}/tokens"
GRACES = (0, 1, 24, 24 * 7)
"""Choices for how many hours a replaced token stays valid."""
_DAY_SECONDS = 86_400
_DAYS = "90"
_FAULTY_FIELDS = {"subject_invalid": "subject", "scope_unknown": "scopes", "ttl_invalid": "days"}


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = pages.router()

    @endpoints.get(_ALL)
    def show_tokens(saved: pages.Saved = "") -> Response:
        return page(saved=saved)

    @endpoints.post(_ALL)
    def issue_token(form: Typed) -> Response:
        chosen = [scope for scope in get_args(Scope) if forms.flag(form, scope)]
        try:
            seconds = _seconds(forms.line(form, "days"))
            issued = issued_tokens.issue(subject=forms.line(form, "subject"), scopes=chosen, ttl_seconds=seconds)
        except Invalid as refused:
            words = forms.fault_text(refused.code)
            fields = forms.with_faults(_fields(form), {_FAULTY_FIELDS[refused.code]: words})
            return page(refused, fields, chosen, scope_fault=words if refused.code == "scope_unknown" else "")
        return page(issued=issued)

    @endpoints.post(f"{_ALL}/rotate")
    @or_again(lambda refused, **_: page(refused), Conflict)
    def rotate_token(form: Typed) -> Response:
        hours = next((hours for hours in GRACES if str(hours) == forms.line(form, "hours")), GRACES[-1])
        return page(issued=issued_tokens.rotate(forms.line(form, "token_id"), grace=timedelta(hours=hours)))

    @endpoints.post(f"{_ALL}/revoke")
    def revoke_token(form: Typed) -> Response:
        issued_tokens.revoke(forms.line(form, "token_id"))
        return pages.saved(_ALL, "revoked")

    def page(
        refused: OporaError | None = None,
        fields: Fields = (),
        chosen: Collection[str] = (),
        *,
        issued: tuple[IssuedToken, str] | None = None,
        scope_fault: str = "",
        saved: str = "",
    ) -> Response:
        known = issued_tokens.all()
        return pages.page(
            desk,
            "tokens",
            "tokens.html",
            refused,
            working=[one for one in known if one.state in ("valid", "ending")],
            over=[one for one in known if one.state in ("revoked", "expired")],
            fields=fields or _fields(None),
            scopes=get_args(Scope),
            chosen=chosen,
            issued=issued,
            graces=GRACES,
            scope_fault=scope_fault,
            fault=problems.detail(refused) if refused and not fields else "",
            saved=saved,
        )

    return endpoints


def _fields(form: FormData | None) -> Fields:
    return (
        Field("subject", value=forms.line(form, "subject") if form is not None else "", required=True),
        Field("days", "number", value=forms.line(form, "days") if form is not None else _DAYS, required=True),
    )


def _seconds(days: str) -> int:
    try:
        return int(forms.number(days, _DAY_SECONDS))
    except ValueError as unfit:
        raise Invalid("ttl_invalid") from unfit

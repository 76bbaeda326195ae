"""Sign-in through the tenant's own identity provider."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import text
from pipelines import problems
from pipelines.connections import public_url
from pipelines.routes import OpenRouter
from tenants.core import context
from tenants.core.errors import Invalid
from tenants.desk import providers
from tenants.desk.operators import TENANT_ROLES
from tenants.desk.providers import Provider
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Field, Fields, Typed
from ui.desk.sso import redirect_uri
from ui.desk.view import Desk

_PATH = "/sign-in"
_NAMES = ("issuer", "client_id", "client_secret", "domains", "default_role", "role_claim", "roles")
_AREAS = ("domains", "roles")


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)

    @endpoints.get(pages.ROOT + _PATH)
    def show_provider(request: Request, saved: Annotated[str, Query(max_length=40)] = "") -> Response:
        return page(request, _stored(providers.own()), saved=saved)

    @endpoints.post(pages.ROOT + _PATH)
    def save_provider(request: Request, form: Typed) -> Response:
        try:
            providers.put(providers.parsed(_read(form)))
        except Invalid as refused:
            typed = _typed(form)
            faults = forms.faults_of(refused, {one.name for one in typed})
            return page(request, forms.with_faults(typed, faults), forms.unplaced(typed, faults), status=422)
        return pages.saved(pages.ROOT + _PATH)

    @endpoints.post(f"{pages.ROOT}{_PATH}/remove")
    def remove_provider() -> Response:
        providers.remove()
        return pages.saved(pages.ROOT + _PATH)

    def page(request: Request, fields: Fields, fault: str = "", *, saved: str = "", status: int = 200) -> Response:
        stored = providers.own()
        link = f"{public_url(request)}/desk/sso/{context.current().tenant_id}"
        return pages.page(
            desk,
            "sign-in",
            "sign_in.html",
            status,
            fields=fields,
            fault=fault,
            saved=saved,
            stored=stored,
            redirect_uri=redirect_uri(request),
            link=link,
        )

    return endpoints


def _stored(provider: Provider | None) -> Fields:
    if provider is None:
        return _fields({})
    return _fields(
        {
            "issuer": provider.issuer,
            "client_id": provider.client_id,
            "domains": "\n".join(provider.domains),
            "default_role": provider.default_role or "",
            "role_claim": provider.role_claim,
            "roles": "\n".join(f"{value} = {role}" for value, role in provider.roles.items()),
        }
    )


def _typed(form: FormData) -> Fields:
    """Return the submitted values; a secret is never sent back."""
    typed = {name: forms.area(form, name) if name in _AREAS else forms.line(form, name) for name in _NAMES}
    return _fields(typed | {"client_secret": ""})


def _fields(values: Mapping[str, str]) -> Fields:
    return tuple(_field(name, values.get(name, "")) for name in _NAMES)


def _field(name: str, value: str) -> Field:
    if name == "default_role":
        locale = problems.caller.get().locale
        nobody = ("", text("desk.settings.sign_in.nobody", locale))
        roles = ((role, text(f"desk.role.{role}", locale)) for role in TENANT_ROLES)
        return Field(name, "choice", value, (nobody, *roles))
    if name in _AREAS:
        return Field(name, "lines", value)
    if name == "client_secret":
        return Field(name, "secret", value)
    return Field(name, "text", value, required=name in ("issuer", "client_id"))


def _read(form: FormData) -> dict[str, object]:
    pairs = (line.rpartition("=") for line in forms.lines(forms.area(form, "roles")))
    secret = form.get("client_secret", "")
    return {
        "issuer": forms.line(form, "issuer"),
        "client_id": forms.line(form, "client_id"),
        "client_secret": secret or None,
        "domains": forms.lines(forms.area(form, "domains")),
        "default_role": forms.line(form, "default_role") or None,
        "role_claim": forms.line(form, "role_claim"),
        "roles": {value.strip(): role.strip() for value, _, role in pairs},
    }

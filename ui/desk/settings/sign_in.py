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
from ui.desk.settings.forms import FORM_BYTES, Fields, Form, Input, Typed
from ui.desk.sso import redirect_uri
from ui.desk.view import Desk, or_again

_PATH = "/sign-in"


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)

    @endpoints.get(pages.ROOT + _PATH)
    def show_provider(request: Request, saved: Annotated[str, Query(max_length=40)] = "") -> Response:
        return page(request, _form().show(_values(providers.own())), saved=saved)

    def refused_provider(refused: Invalid, request: Request, form: FormData) -> Response:
        fault, fields = _form().again(form, refused)
        return page(request, fields, fault, status=refused.status)

    @endpoints.post(pages.ROOT + _PATH)
    @or_again(refused_provider, Invalid)
    def save_provider(request: Request, form: Typed) -> Response:  # noqa: ARG001 - the form shown again needs it
        providers.put(providers.parsed(_form().read(form)))
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


def _values(provider: Provider | None) -> dict[str, object]:
    """Return the stored values; a secret is never sent back."""
    return {} if provider is None else provider.model_dump(exclude={"client_secret"})


def _form() -> Form:
    locale = problems.caller.get().locale
    nobody = ("", text("desk.settings.sign_in.nobody", locale))
    roles = tuple((role, text(f"desk.role.{role}", locale)) for role in TENANT_ROLES)
    return Form(
        Input("issuer", required=True),
        Input("client_id", required=True),
        Input("client_secret", "secret", optional=True, shown_again=False),
        Input("domains", "lines"),
        Input("default_role", "choice", (nobody, *roles), optional=True),
        Input("role_claim"),
        Input("roles", "lines", parse=_roles, write=_written_roles),
    )


def _roles(typed: str) -> dict[str, str]:
    pairs = (line.rpartition("=") for line in forms.lines(typed))
    return {value.strip(): role.strip() for value, _, role in pairs}


def _written_roles(roles: Mapping[str, str]) -> str:
    return "\n".join(f"{value} = {role}" for value, role in roles.items())

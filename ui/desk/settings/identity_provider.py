"""Sign-in through the tenant's own identity provider."""

from collections.abc import Mapping

from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import text
from pipelines.connections import public_url
from pipelines.routes import OpenRouter
from tenants.core import context
from tenants.core.errors import Invalid, OporaError
from tenants.desk import sso_providers
from tenants.desk.operators import TENANT_ROLES
from ui.desk.rendering import Desk, or_again, reader_locale
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Form, Typed
from ui.desk.sso import redirect_uri

_PATH = f"{pages.ROOT}/sign-in"


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_PATH)
    def show_provider(saved: pages.Saved = "") -> Response:
        return page(saved=saved)

    @endpoints.post(_PATH)
    @or_again(lambda refused, form: page(form, refused), Invalid)
    def save_provider(form: Typed) -> Response:
        sso_providers.put(sso_providers.parsed(_form().read(form)))
        return pages.saved(_PATH)

    @endpoints.post(f"{_PATH}/remove")
    def remove_provider() -> Response:
        sso_providers.remove()
        return pages.saved(_PATH)

    def page(form: FormData | None = None, refused: OporaError | None = None, *, saved: str = "") -> Response:
        stored = sso_providers.own()
        # A secret is never sent back.
        values = stored.model_dump(exclude={"client_secret"}) if stored else {}
        fault, fields = _form().shown(values, form, refused)
        tenant_id = context.current().tenant_id
        return pages.page(
            desk,
            "sign-in",
            "identity_provider.html",
            refused,
            fields=fields,
            fault=fault,
            saved=saved,
            stored=stored,
            redirect_uri=redirect_uri(tenant_id),
            link=f"{public_url()}/desk/sso/{tenant_id}",
        )

    return endpoints


def _form() -> Form:
    locale = reader_locale()
    nobody = ("", text("desk.settings.sign_in.nobody", locale))
    roles = tuple((role, text(f"desk.role.{role}", locale)) for role in TENANT_ROLES)
    return Form(
        Field("issuer", required=True),
        Field("client_id", required=True),
        Field("client_secret", "secret", optional=True, shown_again=False),
        Field("domains", "lines"),
        Field("default_role", "choice", (nobody, *roles), optional=True),
        Field("role_claim"),
        Field("roles", "lines", parse=_roles, write=_written_roles),
    )


def _roles(typed: str) -> dict[str, str]:
    pairs = (line.rpartition("=") for line in forms.lines(typed))
    return {value.strip(): role.strip() for value, _, role in pairs}


def _written_roles(roles: Mapping[str, str]) -> str:
    return "\n".join(f"{value} = {role}" for value, role in roles.items())

"""The websites that show the widget: appearance, allowed origins, and visitor secrets."""

from fastapi import Request
from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import LOCALES, text
from pipelines import problems
from pipelines.connections import public_url
from pipelines.routes import OpenRouter
from tenants.chats import sites
from tenants.chats.sites import HELP_CENTRES, Site
from tenants.core.errors import Conflict, Invalid
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Field, Fields, Typed
from ui.desk.view import Desk, back_to

_SITES = "/sites"
_SITE = "/sites/{key}"
_ACTS = ("rotate", "revoke", "identity", "remove")


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)
    _add_list(endpoints, desk)
    _add_site(endpoints, desk)
    return endpoints


def _add_list(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT + _SITES)
    def show_sites(saved: pages.Saved = "") -> Response:
        return listed((Field("name", "text", required=True), Field("origins", "lines")), saved=saved)

    @endpoints.post(pages.ROOT + _SITES)
    def add_site(form: Typed) -> Response:
        fields = (
            Field("name", "text", forms.line(form, "name"), required=True),
            Field("origins", "lines", forms.area(form, "origins")),
        )
        try:
            added = sites.add(forms.line(form, "name"), forms.lines(forms.area(form, "origins")))
        except Invalid as refused:
            faults = _faults(refused, fields)
            return listed(forms.with_faults(fields, faults), status=422)
        return back_to(f"{pages.ROOT}{_SITES}/{added.key}#snippet")

    def listed(fields: Fields, *, saved: str = "", status: int = 200) -> Response:
        sites.refresh()
        return pages.page(desk, "sites", "sites.html", status, sites=sites.own(), fields=fields, saved=saved)


def _add_site(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT + _SITE)
    def show_site(request: Request, key: str, saved: pages.Saved = "") -> Response:
        sites.refresh()
        return page(request, sites.get(key), saved=saved)

    @endpoints.post(pages.ROOT + _SITE)
    def save_site(request: Request, key: str, form: Typed) -> Response:
        sites.refresh()
        try:
            sites.update(
                key,
                version=forms.line(form, "version"),
                name=forms.line(form, "name"),
                origins=forms.lines(forms.area(form, "origins")),
                config=_config(sites.get(key), form),
                identity_required=forms.flag(form, "identity_required"),
            )
        except (Invalid, Conflict) as refused:
            return page(request, sites.get(key), form, refused)
        return pages.saved(f"{pages.ROOT}{_SITES}/{key}")

    @endpoints.post(f"{pages.ROOT}{_SITE}/rotate")
    def rotate(key: str) -> Response:
        sites.rotate(key)
        return pages.saved(f"{pages.ROOT}{_SITES}/{key}", "secrets")

    @endpoints.post(f"{pages.ROOT}{_SITE}/revoke")
    def revoke(key: str) -> Response:
        sites.rotate(key, revoke=True)
        return pages.saved(f"{pages.ROOT}{_SITES}/{key}", "secrets")

    @endpoints.post(f"{pages.ROOT}{_SITE}/identity")
    def renew_identity(request: Request, key: str) -> Response:
        site = sites.rotate(key, identity=True)
        return page(request, site, secret=site.identity_secret or "")

    @endpoints.post(f"{pages.ROOT}{_SITE}/remove")
    def remove(key: str) -> Response:
        sites.remove(key)
        return pages.saved(pages.ROOT + _SITES, "removed")

    def page(
        request: Request,
        site: Site,
        form: FormData | None = None,
        refused: Invalid | Conflict | None = None,
        *,
        saved: str = "",
        secret: str = "",
    ) -> Response:
        current = _fields(site)
        fields, fault = current if form is None else _typed(form), ""
        if isinstance(refused, Conflict):
            fault, fields = forms.refusal(refused, fields, current)
        elif refused is not None:
            faults = _faults(refused, fields)
            fault, fields = forms.unplaced(fields, faults), forms.with_faults(fields, faults)
        return pages.page(
            desk,
            "sites",
            "site.html",
            refused.status if refused else 200,
            site=site,
            fields={one.name: one for one in fields},
            fault=fault,
            saved=saved,
            secret=secret,
            version=sites.version_of(site),
            address=public_url(request),
        )


def _faults(refused: Invalid, fields: Fields) -> dict[str, str]:
    if refused.code == "origin_invalid":
        return {"origins": problems.explained(refused)[1]}
    return dict(forms.faults_of(refused, {one.name for one in fields}))


def _fields(site: Site) -> Fields:
    config, consent = site.config, site.config.consent
    values = {
        "name": site.name,
        "origins": "\n".join(site.origins),
        "locale": config.locale,
        "theme_accent": config.theme.get("accent", ""),
        "welcome": config.welcome,
        "suggested": "\n".join(config.suggested),
        "consent_text": consent.text if consent else "",
        "consent_url": (consent.url or "") if consent else "",
        "files": "true" if config.files else "",
        "help_centre": config.help_centre,
        "identity_required": "true" if site.identity_required else "",
    }
    return tuple(_field(name, value) for name, value in values.items())


def _typed(form: FormData) -> Fields:
    areas = ("origins", "suggested", "welcome", "consent_text")
    return tuple(
        _field(name, forms.area(form, name) if name in areas else forms.line(form, name))
        for name in (
            "name",
            "origins",
            "locale",
            "theme_accent",
            "welcome",
            "suggested",
            "consent_text",
            "consent_url",
            "files",
            "help_centre",
            "identity_required",
        )
    )


def _field(name: str, value: str) -> Field:
    if name in ("files", "identity_required"):
        return Field(name, "flag", value)
    if name in ("origins", "suggested"):
        return Field(name, "lines", value)
    if name == "locale":
        spoken = problems.caller.get().locale
        return Field(name, "choice", value, tuple((one, text(f"desk.first.language.{one}", spoken)) for one in LOCALES))
    if name == "help_centre":
        spoken = problems.caller.get().locale
        choices = tuple((one, text(f"desk.settings.site.help_centre.{one}", spoken)) for one in HELP_CENTRES)
        return Field(name, "choice", value, choices)
    if name in ("welcome", "consent_text"):
        return Field(name, "area", value)
    return Field(name, "text", value, required=name == "name")


def _config(site: Site, form: FormData) -> dict[str, object]:
    """Parse the widget part of a form. Theme values without a field are kept."""
    accent, consent = forms.line(form, "theme_accent"), forms.area(form, "consent_text")
    theme = {name: value for name, value in site.config.theme.items() if name != "accent"}
    url = forms.line(form, "consent_url")
    return {
        "locale": forms.line(form, "locale"),
        "theme": theme | ({"accent": accent} if accent else {}),
        "welcome": forms.area(form, "welcome"),
        "suggested": forms.lines(forms.area(form, "suggested")),
        "consent": {"text": consent, "url": url or None} if consent or url else None,
        "files": forms.flag(form, "files"),
        "help_centre": forms.line(form, "help_centre") or site.config.help_centre,
    }

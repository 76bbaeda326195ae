"""The websites that show the widget: appearance, allowed origins, and visitor secrets."""

from collections.abc import Container, Mapping

from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import LOCALES, text
from pipelines import problems
from pipelines.connections import public_url
from pipelines.routes import OpenRouter
from tenants.chats import sites
from tenants.chats.sites import HELP_CENTRES, Site
from tenants.core.errors import Invalid, OporaError
from ui.desk.rendering import Desk, back_to, or_again, reader_locale
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Form, Typed

_SITES = f"{pages.ROOT}/sites"
_SITE = f"{_SITES}/{{key}}"
_NAME, _ORIGINS = Field("name", required=True), Field("origins", "lines")
_NEW = Form(_NAME, _ORIGINS)


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_SITES)
    def show_sites(saved: pages.Saved = "") -> Response:
        return listed(saved=saved)

    @endpoints.post(_SITES)
    @or_again(lambda refused, form: listed(form, refused), Invalid)
    def add_site(form: Typed) -> Response:
        added = sites.add(forms.line(form, "name"), forms.lines(forms.area(form, "origins")))
        return back_to(f"{_SITES}/{added.key}#snippet")

    def listed(form: FormData | None = None, refused: OporaError | None = None, *, saved: str = "") -> Response:
        sites.refresh()
        _, fields = _NEW.shown({}, form, refused, _faults)
        return pages.page(desk, "sites", "sites.html", refused, sites=sites.own(), fields=fields, saved=saved)

    @endpoints.get(_SITE)
    def show_site(key: str, saved: pages.Saved = "") -> Response:
        sites.refresh()
        return page(sites.get(key), saved=saved)

    @endpoints.post(_SITE)
    @or_again(lambda refused, key, form: page(sites.get(key), form, refused))
    def save_site(key: str, form: Typed) -> Response:
        sites.refresh()
        sites.update(
            key,
            version=forms.line(form, "version"),
            name=forms.line(form, "name"),
            origins=forms.lines(forms.area(form, "origins")),
            config=_config(sites.get(key), form),
            identity_required=forms.flag(form, "identity_required"),
        )
        return pages.saved(f"{_SITES}/{key}")

    @endpoints.post(f"{_SITE}/rotate")
    def rotate(key: str) -> Response:
        sites.rotate(key)
        return pages.saved(f"{_SITES}/{key}", "secrets")

    @endpoints.post(f"{_SITE}/revoke")
    def revoke(key: str) -> Response:
        sites.rotate(key, revoke=True)
        return pages.saved(f"{_SITES}/{key}", "secrets")

    @endpoints.post(f"{_SITE}/identity")
    def renew_identity(key: str) -> Response:
        site = sites.rotate(key, identity=True)
        return page(site, secret=site.identity_secret or "")

    @endpoints.post(f"{_SITE}/remove")
    def remove(key: str) -> Response:
        sites.remove(key)
        return pages.saved(_SITES, "removed")

    def page(
        site: Site,
        form: FormData | None = None,
        refused: OporaError | None = None,
        *,
        saved: str = "",
        secret: str = "",
    ) -> Response:
        fault, fields = _form().shown(_values(site), form, refused, _faults)
        return pages.page(
            desk,
            "sites",
            "site.html",
            refused,
            site=site,
            fields={one.name: one for one in fields},
            fault=fault,
            saved=saved,
            secret=secret,
            version=sites.version_of(site),
            address=public_url(),
        )

    return endpoints


def _faults(refused: OporaError, names: Container[str]) -> Mapping[str, str]:
    if refused.code in ("origin_invalid", "origins_too_many"):
        return {"origins": problems.detail(refused)}
    return forms.faults_of(refused, names)


def _form() -> Form:
    spoken = reader_locale()
    languages = tuple((one, text(f"desk.first.language.{one}", spoken)) for one in LOCALES)
    help_centres = tuple((one, text(f"desk.settings.site.help_centre.{one}", spoken)) for one in HELP_CENTRES)
    return Form(
        _NAME,
        _ORIGINS,
        Field("locale", "choice", languages),
        Field("theme_accent"),
        Field("welcome", "area"),
        Field("suggested", "lines"),
        Field("consent_text", "area"),
        Field("consent_url", optional=True),
        Field("files", "flag"),
        Field("help_centre", "choice", help_centres),
        Field("identity_required", "flag"),
    )


def _values(site: Site) -> dict[str, object]:
    config, consent = site.config, site.config.consent
    return {
        **{name: getattr(config, name) for name in ("locale", "welcome", "suggested", "files", "help_centre")},
        **{name: getattr(site, name) for name in ("name", "origins", "identity_required")},
        "theme_accent": config.theme.get("accent"),
        "consent_text": consent.text if consent else None,
        "consent_url": consent.url if consent else None,
    }


def _config(site: Site, form: FormData) -> dict[str, object]:
    """Parse the widget part of a form. Theme values without a field are kept."""
    read = _form().read(form)
    accent, consent, url = read["theme_accent"], read["consent_text"], read["consent_url"]
    theme = {name: value for name, value in site.config.theme.items() if name != "accent"}
    return {
        **{name: read[name] for name in ("locale", "welcome", "suggested", "files")},
        "theme": theme | ({"accent": accent} if accent else {}),
        "consent": {"text": consent, "url": url} if consent or url else None,
        "help_centre": read["help_centre"] or site.config.help_centre,
    }

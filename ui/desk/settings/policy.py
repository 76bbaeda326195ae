"""The tenant's policy: rules by topic, synonyms. Each topic has a separate form."""

from collections.abc import Iterable

from starlette.datastructures import FormData
from starlette.responses import Response

from pipelines.ask import profiles
from pipelines.routes import OpenRouter
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import NotFound, OporaError
from ui.desk.rendering import Desk, or_again
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Form, Typed
from ui.desk.settings.policy_fields import GROUPS, form_of

_SYNONYMS = f"{pages.ROOT}/synonyms"


def _read_synonyms(typed: str) -> list[list[str]]:
    return [[word.strip() for word in group.split(",") if word.strip()] for group in forms.lines(typed)]


def _written_synonyms(groups: Iterable[Iterable[str]]) -> str:
    return "\n".join(", ".join(group) for group in groups)


_SYNONYM_GROUPS = Form(Field("synonyms", "lines", parse=_read_synonyms, write=_written_synonyms))


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(pages.ROOT)
    def show_policy(saved: pages.Saved = "") -> Response:
        return rules(saved=saved)

    @endpoints.post(f"{pages.ROOT}/policy/{{group}}")
    @or_again(lambda refused, group, form: rules(group, form, refused))
    def save_policy(group: str, form: Typed) -> Response:
        if group not in GROUPS:
            raise NotFound
        profiles.apply_policy(form_of(group).read(form), forms.line(form, "version"))
        return pages.saved(pages.ROOT, group)

    def rules(
        group: str = "", form: FormData | None = None, refused: OporaError | None = None, *, saved: str = ""
    ) -> Response:
        now, fault = policy.latest(), ""
        groups = {name: form_of(name).shown(dict(now))[1] for name in GROUPS}
        if refused is not None:
            fault, groups[group] = form_of(group).shown(dict(now), form, refused)
        return page("policy", now, refused, groups=groups, group=group, fault=fault, saved=saved)

    @endpoints.get(_SYNONYMS)
    def show_synonyms(saved: pages.Saved = "") -> Response:
        return synonyms(saved=saved)

    @endpoints.post(_SYNONYMS)
    @or_again(lambda refused, form: synonyms(form, refused))
    def save_synonyms(form: Typed) -> Response:
        policy.apply(_SYNONYM_GROUPS.read(form), forms.line(form, "version"))
        return pages.saved(_SYNONYMS)

    def synonyms(form: FormData | None = None, refused: OporaError | None = None, *, saved: str = "") -> Response:
        now = policy.latest()
        fault, fields = _SYNONYM_GROUPS.shown(dict(now), form, refused)
        return page("synonyms", now, refused, fields=fields, fault=fault, saved=saved)

    def page(here: str, now: Policy, refused: OporaError | None, **values: object) -> Response:
        return pages.page(desk, here, f"{here}.html", refused, version=policy.version_of(now), **values)

    return endpoints

"""The tenant's policy: rules by topic, synonyms. Each topic has a separate form."""

from starlette.datastructures import FormData
from starlette.responses import Response

from pipelines.routes import OpenRouter
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import Conflict, Invalid, NotFound
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Field, Fields, Typed
from ui.desk.settings.policy_fields import GROUPS, policy_fields, read_policy_fields
from ui.desk.view import Desk

_GROUP = "/policy/{group}"
_SYNONYMS = "/synonyms"


def router(desk: Desk) -> OpenRouter:
    """Return the pages."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)
    _add_rules(endpoints, desk)
    _add_synonyms(endpoints, desk)
    return endpoints


def _add_rules(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT)
    def show_policy(saved: pages.Saved = "") -> Response:
        return _rules(desk, saved=saved)

    @endpoints.post(pages.ROOT + _GROUP)
    def save_policy(group: str, form: Typed) -> Response:
        if group not in GROUPS:
            raise NotFound
        try:
            policy.apply(read_policy_fields(GROUPS[group], form), forms.line(form, "version"))
        except (Invalid, Conflict) as refused:
            return _rules(desk, group, form, refused)
        return pages.saved(pages.ROOT, group)


def _rules(
    desk: Desk,
    group: str = "",
    form: FormData | None = None,
    refused: Invalid | Conflict | None = None,
    *,
    saved: str = "",
) -> Response:
    """Render the page; after a rejection, with the submitted values and their errors."""
    now = policy.latest()
    groups = {name: policy_fields(names, now) for name, names in GROUPS.items()}
    fault = ""
    if refused is not None and form is not None:
        typed = policy_fields(GROUPS[group], now, form)
        fault, groups[group] = forms.refusal(refused, typed, groups[group])
    return _page(desk, "policy", now, refused, groups=groups, group=group, fault=fault, saved=saved)


def _page(desk: Desk, here: str, now: Policy, refused: Invalid | Conflict | None, **values: object) -> Response:
    """Return a form with the current policy."""
    status = refused.status if refused else 200
    return pages.page(desk, here, f"{here}.html", status, version=policy.version_of(now), **values)


def _add_synonyms(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT + _SYNONYMS)
    def show_synonyms(saved: pages.Saved = "") -> Response:
        return synonyms(policy.latest(), saved=saved)

    @endpoints.post(pages.ROOT + _SYNONYMS)
    def save_synonyms(form: Typed) -> Response:
        typed = forms.area(form, "synonyms")
        groups = [[word.strip() for word in group.split(",") if word.strip()] for group in forms.lines(typed)]
        try:
            policy.apply({"synonyms": groups}, forms.line(form, "version"))
        except (Invalid, Conflict) as refused:
            return synonyms(policy.latest(), typed, refused)
        return pages.saved(pages.ROOT + _SYNONYMS)

    def synonyms(
        now: Policy, typed: str | None = None, refused: Invalid | Conflict | None = None, *, saved: str = ""
    ) -> Response:
        current = Field("synonyms", "lines", "\n".join(", ".join(group) for group in now.synonyms))
        fields: Fields = (current if typed is None else Field("synonyms", "lines", typed),)
        fault = ""
        if refused is not None:
            fault, fields = forms.refusal(refused, fields, (current,))
        return _page(desk, "synonyms", now, refused, fields=fields, fault=fault, saved=saved)

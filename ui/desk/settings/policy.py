"""The tenant's policy: rules by topic, synonyms. Each topic has a separate form."""

from collections.abc import Iterable

from starlette.datastructures import FormData
from starlette.responses import Response

from pipelines.routes import OpenRouter
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import Conflict, Invalid, NotFound
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Form, Input, Typed
from ui.desk.settings.policy_fields import GROUPS, form_of
from ui.desk.view import Desk, or_again

_GROUP = "/policy/{group}"
_SYNONYMS = "/synonyms"


def _read_synonyms(typed: str) -> list[list[str]]:
    return [[word.strip() for word in group.split(",") if word.strip()] for group in forms.lines(typed)]


def _written_synonyms(groups: Iterable[Iterable[str]]) -> str:
    return "\n".join(", ".join(group) for group in groups)


_SYNONYM_GROUPS = Form(Input("synonyms", "lines", parse=_read_synonyms, write=_written_synonyms))


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
    @or_again(lambda refused, group, form: _rules(desk, group, form, refused))
    def save_policy(group: str, form: Typed) -> Response:
        if group not in GROUPS:
            raise NotFound
        policy.apply(form_of(group).read(form), forms.line(form, "version"))
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
    values, fault = dict(now), ""
    groups = {name: form_of(name).show(values) for name in GROUPS}
    if refused is not None and form is not None:
        fault, groups[group] = form_of(group).again(form, refused, values)
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
    @or_again(lambda refused, form: synonyms(policy.latest(), form, refused))
    def save_synonyms(form: Typed) -> Response:
        policy.apply(_SYNONYM_GROUPS.read(form), forms.line(form, "version"))
        return pages.saved(pages.ROOT + _SYNONYMS)

    def synonyms(
        now: Policy, form: FormData | None = None, refused: Invalid | Conflict | None = None, *, saved: str = ""
    ) -> Response:
        values, fault = dict(now), ""
        fields = _SYNONYM_GROUPS.show(values)
        if form is not None and refused is not None:
            fault, fields = _SYNONYM_GROUPS.again(form, refused, values)
        return _page(desk, "synonyms", now, refused, fields=fields, fault=fault, saved=saved)

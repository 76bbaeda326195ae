"""The tenant's policy: rules by topic, synonyms. Each topic has a separate form."""

from starlette.datastructures import FormData
from starlette.responses import Response

<<<<<<< HEAD
from pipelines.gate import Route
=======
from components.turn import Risk
from pipelines import problems
from pipelines.routes import OpenRouter
>>>>>>> c12eabcc (api: declare scope, body limit and page at the endpoint)
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import Conflict, Invalid, NotFound
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Field, Fields, Typed
from ui.desk.settings.policy_fields import GROUPS, policy_fields, read_policy_fields
from ui.desk.view import Desk

_GROUP = "/policy/{group}"
_SYNONYMS = "/synonyms"

<<<<<<< HEAD
ROUTES: tuple[Route, ...] = (
    *pages.reads("", _SYNONYMS),
    *pages.writes(FORM_BYTES, _GROUP, _SYNONYMS),
)
=======
>>>>>>> c12eabcc (api: declare scope, body limit and page at the endpoint)

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


<<<<<<< HEAD
def _add_synonyms(endpoints: APIRouter, desk: Desk) -> None:
=======
def _add_offers(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get(pages.ROOT + _OFFERS)
    def show_offers(saved: pages.Saved = "") -> Response:
        now = policy.latest()
        return offers(now, now.approved_offers, saved=saved)

    @endpoints.post(pages.ROOT + _OFFERS)
    def save_offers(form: Typed) -> Response:
        typed = {risk: forms.area(form, risk) for risk in RISKS}
        now = policy.latest()
        others = {risk: offer for risk, offer in now.approved_offers.items() if risk not in RISKS}
        chosen = others | {risk: offer for risk, offer in typed.items() if offer}
        try:
            policy.apply({"approved_offers": chosen}, forms.line(form, "version"))
        except (Invalid, Conflict) as refused:
            return offers(policy.latest(), typed, refused)
        return pages.saved(pages.ROOT + _OFFERS)

    def offers(
        now: Policy, shown: Mapping[str, str], refused: Invalid | Conflict | None = None, *, saved: str = ""
    ) -> Response:
        fields = tuple(Field(risk, "area", shown.get(risk, "")) for risk in RISKS)
        fault = ""
        if refused is not None:
            current = tuple(Field(risk, "area", now.approved_offers.get(risk, "")) for risk in RISKS)
            fault, fields = forms.refusal(refused, fields, current)
            fault = fault or problems.explained(refused)[1]
        return _page(desk, "offers", now, refused, fields=fields, fault=fault, saved=saved)


def _add_synonyms(endpoints: OpenRouter, desk: Desk) -> None:
>>>>>>> c12eabcc (api: declare scope, body limit and page at the endpoint)
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

"""Approved offers: one for each kind of serious request, and those for requests with certain words."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import text
from components.turn import Risk
from pipelines import problems
from pipelines.routes import OpenRouter
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import Conflict, Invalid
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import FORM_BYTES, Field, Fields, Typed
from ui.desk.view import Desk, or_again

_PATH = "/offers"
RISKS = tuple(risk for risk in get_args(Risk) if risk != "none")
_SPARE = 2
"""Empty rows for new offers."""
_MOST = 25
"""Rows that a form may send."""


@dataclass(frozen=True, slots=True)
class BoundOffer:
    """An offer for requests of a risk that have one of these words, as a row of the form."""

    risk: str = RISKS[0]
    words: str = ""
    offer: str = ""

    @property
    def name(self) -> str:
        """Return its name in the policy."""
        return f"{self.risk}/{self.words}"


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of a policy: by risk, by risk and words, and those that the form does not show but keeps."""

    by_risk: Mapping[str, str]
    bound: tuple[BoundOffer, ...]
    others: Mapping[str, str]

    @classmethod
    def from_policy(cls, approved: Mapping[str, str]) -> "Offers":
        """Return the offers of a policy."""
        rows = ((name.partition("/"), offer) for name, offer in approved.items())
        bound = tuple(BoundOffer(risk, words, offer) for (risk, slash, words), offer in rows if slash and risk in RISKS)
        bound = bound[: _MOST - _SPARE]
        by_risk = {risk: approved.get(risk, "") for risk in RISKS}
        shown = {*RISKS, *(one.name for one in bound)}
        return cls(by_risk, bound, {name: offer for name, offer in approved.items() if name not in shown})

    @classmethod
    def typed(cls, form: FormData, others: Mapping[str, str]) -> "Offers":
        """Return the offers of a form; rows without text are dropped."""
        rows = (
            BoundOffer(
                forms.line(form, f"bound_{number}_risk"),
                forms.line(form, f"bound_{number}_words").replace(",", " ").strip(),
                forms.area(form, f"bound_{number}_offer"),
            )
            for number in range(_MOST)
        )
        bound = tuple(replace(row, words=" ".join(row.words.split())) for row in rows if row.words or row.offer)
        return cls({risk: forms.area(form, risk) for risk in RISKS}, bound, others)

    def approved(self) -> dict[str, str]:
        """Return the offers as a policy stores them."""
        by_risk = {risk: offer for risk, offer in self.by_risk.items() if offer}
        return {**self.others, **by_risk, **{row.name: row.offer for row in self.bound if row.offer}}

    def faults(self) -> Mapping[str, str]:
        """Return the errors of the rows by field."""
        faults: dict[str, str] = {}
        names = [row.name for row in self.bound]
        for number, row in enumerate(self.bound):
            if row.risk not in RISKS:
                faults[f"bound_{number}_risk"] = forms.fault_text("other")
            if not row.words:
                faults[f"bound_{number}_words"] = forms.fault_text("missing")
            elif row.name in names[:number]:
                faults[f"bound_{number}_words"] = forms.fault_text("offer_twice")
        return faults


def router(desk: Desk) -> OpenRouter:
    """Return the page."""
    endpoints = OpenRouter(pages.SCOPE, limit=FORM_BYTES, page=True, include_in_schema=False)

    @endpoints.get(pages.ROOT + _PATH)
    def show_offers(saved: pages.Saved = "") -> Response:
        now = policy.latest()
        return _page(desk, now, Offers.from_policy(now.approved_offers), saved=saved)

    @endpoints.post(pages.ROOT + _PATH)
    @or_again(lambda refused, form: _refused(desk, form, refused))
    def save_offers(form: Typed) -> Response:
        typed = _typed(form)
        if faults := typed.faults():
            return _page(desk, policy.latest(), typed, faults=faults, status=422)
        policy.apply({"approved_offers": typed.approved()}, forms.line(form, "version"))
        return pages.saved(pages.ROOT + _PATH)

    return endpoints


def _typed(form: FormData) -> Offers:
    return Offers.typed(form, Offers.from_policy(policy.latest().approved_offers).others)


def _refused(desk: Desk, form: FormData, refused: Invalid | Conflict) -> Response:
    now, typed = policy.latest(), _typed(form)
    fields = _by_risk(typed)
    fault, fields = forms.refusal(refused, fields, _by_risk(Offers.from_policy(now.approved_offers)))
    return _page(desk, now, typed, fields=fields, fault=fault or problems.detail(refused), status=refused.status)


def _page(
    desk: Desk,
    now: Policy,
    shown: Offers,
    *,
    fields: Fields | None = None,
    faults: Mapping[str, str] | None = None,
    fault: str = "",
    status: int = 200,
    saved: str = "",
) -> Response:
    rows = [_row(number, row) for number, row in enumerate((*shown.bound, *(BoundOffer(),) * _SPARE))]
    return pages.page(
        desk,
        "offers",
        "offers.html",
        status,
        version=policy.version_of(now),
        fields=fields or _by_risk(shown),
        rows=[forms.with_faults(row, faults or {}) for row in rows[:_MOST]],
        fault=fault,
        saved=saved,
    )


def _by_risk(shown: Offers) -> Fields:
    return tuple(Field(risk, "area", shown.by_risk.get(risk, "")) for risk in RISKS)


def _row(number: int, row: BoundOffer) -> Fields:
    return (
        Field(f"bound_{number}_risk", "choice", row.risk, _choices()),
        Field(f"bound_{number}_words", "text", row.words),
        Field(f"bound_{number}_offer", "area", row.offer),
    )


def _choices() -> tuple[tuple[str, str], ...]:
    locale = problems.caller.get().locale
    return tuple((risk, text(f"desk.settings.offer.{risk}.label", locale)) for risk in RISKS)

"""Approved offers: one for each kind of serious request, and those for requests with certain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import text
from components.turn import Risk
from pipelines.routes import OpenRouter
from tenants.accounts import policy
from tenants.core.errors import Invalid, OporaError
from ui.desk.rendering import Desk, or_again, reader_locale
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Fields, Form, Typed

_PATH = f"{pages.ROOT}/offers"
RISKS = tuple(risk for risk in get_args(Risk) if risk != "none")
_SPARE = 2
_MOST = 25


_BY_RISK = Form(*(Field(risk, "area") for risk in RISKS))


@dataclass(frozen=True, slots=True)
class BoundOffer:
    """An offer for requests of a risk that have one of these words, as a row of the form."""

    risk: str = RISKS[0]
    words: str = ""
    offer: str = ""

    @property
    def name(self) -> str:
        return f"{self.risk}/{self.words}"


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_PATH)
    def show_offers(saved: pages.Saved = "") -> Response:
        return page(saved=saved)

    @endpoints.post(_PATH)
    @or_again(lambda refused, form: page(form, refused))
    def save_offers(form: Typed) -> Response:
        rows = _typed(form)
        if _faults(rows):
            raise Invalid("field_invalid")
        stored = policy.latest().approved_offers
        shown = {*RISKS, *(row.name for row in _bound(stored))}
        offers = {name: offer for name, offer in stored.items() if name not in shown}
        offers |= {risk: offer for risk in RISKS if (offer := forms.area(form, risk))}
        offers |= {row.name: row.offer for row in rows if row.offer}
        policy.apply({"approved_offers": offers}, forms.line(form, "version"))
        return pages.saved(_PATH)

    def page(form: FormData | None = None, refused: OporaError | None = None, *, saved: str = "") -> Response:
        now = policy.latest()
        rows = _bound(now.approved_offers) if form is None else _typed(form)
        faults = {} if form is None else _faults(rows)
        fault, fields = _BY_RISK.shown(now.approved_offers, form, refused)
        spare = (BoundOffer(),) * _SPARE
        return pages.page(
            desk,
            "offers",
            "offers.html",
            refused,
            version=policy.version_of(now),
            fields=fields,
            rows=[forms.with_faults(_row(at, row), faults) for at, row in enumerate((*rows, *spare)[:_MOST])],
            fault="" if faults else fault,
            saved=saved,
        )

    return endpoints


def _bound(approved: Mapping[str, str]) -> tuple[BoundOffer, ...]:
    rows = ((name.partition("/"), offer) for name, offer in approved.items())
    found = tuple(BoundOffer(risk, words, offer) for (risk, slash, words), offer in rows if slash and risk in RISKS)
    return found[: _MOST - _SPARE]


def _typed(form: FormData) -> tuple[BoundOffer, ...]:
    """Return the rows of a form; those without text are dropped."""
    rows = (
        BoundOffer(
            forms.line(form, f"bound_{number}_risk"),
            " ".join(forms.line(form, f"bound_{number}_words").replace(",", " ").split()),
            forms.area(form, f"bound_{number}_offer"),
        )
        for number in range(_MOST)
    )
    return tuple(row for row in rows if row.words or row.offer)


def _faults(rows: Sequence[BoundOffer]) -> Mapping[str, str]:
    faults: dict[str, str] = {}
    names = [row.name for row in rows]
    for number, row in enumerate(rows):
        if row.risk not in RISKS:
            faults[f"bound_{number}_risk"] = forms.fault_text("other")
        if not row.words:
            faults[f"bound_{number}_words"] = forms.fault_text("missing")
        elif row.name in names[:number]:
            faults[f"bound_{number}_words"] = forms.fault_text("offer_twice")
    return faults


def _row(number: int, row: BoundOffer) -> Fields:
    risks = tuple((risk, text(f"desk.settings.offer.{risk}.label", reader_locale())) for risk in RISKS)
    return (
        Field(f"bound_{number}_risk", "choice", risks, value=row.risk),
        Field(f"bound_{number}_words", value=row.words),
        Field(f"bound_{number}_offer", "area", value=row.offer),
    )

"""Working hours of the tenant or of one of its sites."""

import re
from functools import lru_cache
from typing import Annotated
from zoneinfo import available_timezones

from fastapi import Query
from starlette.datastructures import FormData
from starlette.responses import Response

from components.language.texts import LOCALES
from pipelines.ask.staffing import staffing
from pipelines.routes import OpenRouter
from tenants.accounts import hours, policy
from tenants.accounts.hours import WEEKDAYS, Hours
from tenants.chats import sites
from tenants.core.errors import OporaError
from ui.desk.rendering import Desk, or_again, reader_locale
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Form, Typed

_PATH = f"{pages.ROOT}/hours"
_RUSSIAN_DAY = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_REGIONS = ("Europe/", "Asia/")

SiteKey = Annotated[str, Query(alias="site", max_length=64)]


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_PATH)
    def show_hours(site: SiteKey = "", saved: pages.Saved = "") -> Response:
        return page(site, saved=saved)

    @endpoints.post(_PATH)
    @or_again(lambda refused, form: page(forms.line(form, "site"), form, refused))
    def save_hours(form: Typed) -> Response:
        site = forms.line(form, "site")
        sites.set_hours(site, hours.parsed(_read(form)), version=forms.line(form, "version"))
        return pages.saved(_path_of(site))

    @endpoints.post(f"{_PATH}/remove")
    def remove_hours(form: Typed) -> Response:
        site = forms.line(form, "site")
        sites.set_hours(site, None)
        return pages.saved(_path_of(site))

    def page(key: str, form: FormData | None = None, refused: OporaError | None = None, *, saved: str = "") -> Response:
        sites.refresh()
        site, rules = sites.get(key) if key else None, policy.latest()
        own = site.config.hours if site else rules.hours
        in_force = own or rules.hours
        fault, fields = _FORM.shown(_values(in_force), form, refused)
        return pages.page(
            desk,
            "sites" if site else "hours",
            "hours.html",
            refused,
            site=site,
            own=own,
            now=staffing(in_force, reader_locale()),
            fields=fields,
            fault=fault,
            saved=saved,
            zones=_zones(),
            version=sites.version_of(site) if site else policy.version_of(rules),
        )

    return endpoints


def _path_of(site: str) -> str:
    return f"{_PATH}?site={site}" if site else _PATH


def _values(now: Hours | None) -> dict[str, object]:
    if now is None:
        return {}
    return {
        "zone": now.zone,
        "holidays": "\n".join(map(str, now.holidays)),
        **{f"week_{day}": now.week.get(day, ()) for day in WEEKDAYS},
        **{f"away_{locale}": words for locale, words in now.away.items()},
    }


def _read(form: FormData) -> dict[str, object]:
    read = _FORM.read(form)
    spans = {day: read[f"week_{day}"] for day in WEEKDAYS}
    away = {locale: read[f"away_{locale}"] for locale in LOCALES}
    return {
        "zone": read["zone"],
        "week": {day: given for day, given in spans.items() if given},
        "holidays": read["holidays"],
        "away": {locale: words for locale, words in away.items() if words},
    }


def _spans(typed: str) -> tuple[str, ...]:
    """Parse time spans as people write them: `9:00 – 18:00, 19-21`."""
    plain = typed.replace("–", "-").replace("—", "-").replace(" ", "")
    return tuple(_span(one) for one in plain.split(",") if one)


def _span(typed: str) -> str:
    def clock(part: str) -> str:
        hour, _, minute = part.partition(":")
        return f"{hour.zfill(2)}:{minute or '00'}"

    return "-".join(map(clock, typed.split("-")))


def _days(typed: str) -> list[str]:
    """Convert days to ISO 8601; accepts Russian notation as well."""

    def iso(day: str) -> str:
        found = _RUSSIAN_DAY.fullmatch(day)
        return f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}" if found else day

    return [iso(one) for one in forms.lines(typed)]


_FORM = Form(
    Field("zone", required=True),
    *(Field(f"week_{day}", parse=_spans, write=", ".join) for day in WEEKDAYS),
    Field("holidays", "lines", parse=_days),
    *(Field(f"away_{locale}") for locale in LOCALES),
)


@lru_cache(maxsize=1)
def _zones() -> tuple[str, ...]:
    return tuple(sorted(zone for zone in available_timezones() if zone.startswith(_REGIONS)))

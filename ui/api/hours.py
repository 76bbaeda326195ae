"""`/desk/hours`: working hours of a tenant or of one of its sites."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from pipelines.ask.staffing import Staffing, staffing
from pipelines.routes import OpenRouter, opens
from tenants.accounts import policy
from tenants.accounts.hours import Hours
from tenants.chats import sites

SiteKey = Annotated[str, Query(alias="site", max_length=64, description="A site's key; empty: the tenant's own hours.")]


class HoursAnswer(BaseModel):
    """Effective hours (null if not set) and the current text for customers."""

    hours: Hours | None
    now: Staffing | None


router = OpenRouter("admin", limit=50_000, desk=True, tags=["desk"])


@router.get("/desk/hours")
@opens(scope="operate")
def read_hours(site: SiteKey = "") -> HoursAnswer:
    """Return the effective hours: the site's, or else the tenant's."""
    return hours_answer(site)


@router.put("/desk/hours")
def set_hours(body: Hours, site: SiteKey = "") -> HoursAnswer:
    """Set the hours of a site or of the tenant."""
    sites.set_hours(site, body)
    return hours_answer(site)


@router.delete("/desk/hours")
def remove_hours(site: SiteKey = "") -> HoursAnswer:
    """Remove hours. A site then has the tenant's hours; a tenant has none."""
    sites.set_hours(site, None)
    return hours_answer(site)


def hours_answer(site: str) -> HoursAnswer:
    locale = sites.get(site).config.locale if site else policy.current().locale
    hours = sites.hours(site)
    return HoursAnswer(hours=hours, now=staffing(hours, locale))

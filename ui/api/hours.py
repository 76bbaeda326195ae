"""`/desk/hours`: when people answer, for a tenant or for one of its sites."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from pipelines.ask.staffing import Staffing, staffing
from pipelines.gate import Route
from tenants.accounts import policy
from tenants.accounts.hours import Hours
from tenants.chats import sites

_PATH = "/desk/hours"
_BODY_BYTES = 50_000

SiteKey = Annotated[str, Query(alias="site", max_length=64, description="A site's key; empty: the tenant's own hours.")]

ROUTES = (
    Route("GET", _PATH, scope="operate", desk=True),
    Route("PUT", _PATH, scope="admin", desk=True, body=Hours, limit=_BODY_BYTES),
    Route("DELETE", _PATH, scope="admin", desk=True),
)


class HoursAnswer(BaseModel):
    """The hours in force, null where nobody has set any, and what customers read about them now."""

    hours: Hours | None
    now: Staffing | None


def router() -> APIRouter:
    """The endpoints."""
    endpoints = APIRouter(tags=["desk"])

    @endpoints.get(_PATH)
    def read_hours(site: SiteKey = "") -> HoursAnswer:
        """The hours in force: the site's, else the tenant's."""
        return hours_answer(site)

    @endpoints.put(_PATH)
    def set_hours(body: Hours, site: SiteKey = "") -> HoursAnswer:
        """Set the hours of a site, or the tenant's."""
        sites.set_hours(site, body)
        return hours_answer(site)

    @endpoints.delete(_PATH)
    def remove_hours(site: SiteKey = "") -> HoursAnswer:
        """A site has the tenant's hours again; the tenant has none."""
        sites.set_hours(site, None)
        return hours_answer(site)

    return endpoints


def hours_answer(site: str) -> HoursAnswer:
    """The hours in force. Raises `NotFound` for a site that the tenant does not have."""
    locale = sites.get(site).config.locale if site else policy.current().locale
    hours = sites.hours(site)
    return HoursAnswer(hours=hours, now=staffing(hours, locale))

"""All settings pages."""

from fastapi import APIRouter

from pipelines.gate import Route
from ui.desk.settings import change, hours, model, offers, policy, sign_in, site, token, tool, webhook
from ui.desk.view import Desk

_SECTIONS = (
    policy,
    hours,
    offers,
    site,
    tool,
    webhook,
    token,
    model,
    sign_in,
    change,
)
ROUTES: tuple[Route, ...] = tuple(route for section in _SECTIONS for route in section.ROUTES)


def router(desk: Desk) -> APIRouter:
    """Return the pages."""
    endpoints = APIRouter(include_in_schema=False)
    for section in _SECTIONS:
        endpoints.include_router(section.router(desk))
    return endpoints

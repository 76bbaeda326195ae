"""All pages of settings."""

from fastapi import APIRouter

from pipelines.ask.desk.settings import change_pages, hours_pages, policy_pages, site_pages
from pipelines.ask.desk.view import Desk
from pipelines.gate import Route

ROUTES: tuple[Route, ...] = (*policy_pages.ROUTES, *hours_pages.ROUTES, *site_pages.ROUTES, *change_pages.ROUTES)


def router(desk: Desk) -> APIRouter:
    """The pages."""
    endpoints = APIRouter(include_in_schema=False)
    for section in (policy_pages, hours_pages, site_pages, change_pages):
        endpoints.include_router(section.router(desk))
    return endpoints

"""All pages of insight."""

from fastapi import APIRouter

from pipelines.ask.desk.insights import audit_pages, figures_pages
from pipelines.ask.desk.view import Desk
from pipelines.gate import Route

ROUTES: tuple[Route, ...] = (*figures_pages.ROUTES, *audit_pages.ROUTES)


def router(desk: Desk) -> APIRouter:
    """The pages."""
    endpoints = APIRouter(include_in_schema=False)
    for section in (figures_pages, audit_pages):
        endpoints.include_router(section.router(desk))
    return endpoints

"""All pages of insight."""

from fastapi import APIRouter

from pipelines.ask.desk.insights import audit_pages, evaluation_pages, figures_pages, playground_pages, reading_pages
from pipelines.ask.desk.view import Desk
from pipelines.ask.runner import Runner
from pipelines.gate import Route

ROUTES: tuple[Route, ...] = (
    *figures_pages.ROUTES,
    *audit_pages.ROUTES,
    *reading_pages.ROUTES,
    *evaluation_pages.ROUTES,
    *playground_pages.ROUTES,
)


def router(desk: Desk, runner: Runner) -> APIRouter:
    """The pages."""
    endpoints = APIRouter(include_in_schema=False)
    for section in (figures_pages, audit_pages, evaluation_pages):
        endpoints.include_router(section.router(desk))
    endpoints.include_router(reading_pages.router(desk, runner.ask))
    endpoints.include_router(playground_pages.router(desk, runner))
    return endpoints

"""All pages of insight."""

from fastapi import APIRouter

from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.runner import Runner
from pipelines.gate import Route
from ui.desk.insights import audit, evaluation, figures, measured, playground, reading
from ui.desk.view import Desk

ROUTES: tuple[Route, ...] = (
    *figures.ROUTES,
    *audit.ROUTES,
    *reading.ROUTES,
    *evaluation.ROUTES,
    *measured.ROUTES,
    *playground.ROUTES,
)


def router(desk: Desk, runner: Runner, evaluations: Evaluation) -> APIRouter:
    """Return the pages."""
    endpoints = APIRouter(include_in_schema=False)
    for section in (figures, audit, measured):
        endpoints.include_router(section.router(desk))
    endpoints.include_router(evaluation.router(desk, evaluations))
    endpoints.include_router(reading.router(desk, runner.ask))
    endpoints.include_router(playground.router(desk, runner))
    return endpoints

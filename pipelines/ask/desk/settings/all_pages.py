"""All pages of settings."""

from fastapi import APIRouter

from pipelines.ask.desk.settings import (
    change_pages,
    hours_pages,
    model_pages,
    policy_pages,
    sign_in_pages,
    site_pages,
    token_pages,
    tool_pages,
    webhook_pages,
)
from pipelines.ask.desk.view import Desk
from pipelines.gate import Route

_SECTIONS = (
    policy_pages,
    hours_pages,
    site_pages,
    tool_pages,
    webhook_pages,
    token_pages,
    model_pages,
    sign_in_pages,
    change_pages,
)
ROUTES: tuple[Route, ...] = tuple(route for section in _SECTIONS for route in section.ROUTES)


def router(desk: Desk) -> APIRouter:
    """The pages."""
    endpoints = APIRouter(include_in_schema=False)
    for section in _SECTIONS:
        endpoints.include_router(section.router(desk))
    return endpoints

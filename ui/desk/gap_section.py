"""The pages about knowledge gaps and the articles that close them."""

from fastapi import APIRouter

from pipelines.ask.articles.usecase import Articles
from ui.desk import article, doubt, gap
from ui.desk.view import Desk

ROUTES = (*gap.ROUTES, *article.ROUTES, *doubt.ROUTES)


def router(desk: Desk, articles: Articles) -> APIRouter:
    """Return the pages."""
    endpoints = APIRouter()
    endpoints.include_router(gap.router(desk, articles))
    endpoints.include_router(article.router(desk, articles))
    endpoints.include_router(doubt.router(desk))
    return endpoints

"""The pages about what the knowledge base lacks, and how it gets better, together."""

from fastapi import APIRouter

from pipelines.ask.articles.usecase import Articles
from ui.desk import article, doubt, gap
from ui.desk.view import Desk

ROUTES = (*gap.ROUTES, *article.ROUTES, *doubt.ROUTES)


def router(desk: Desk, articles: Articles) -> APIRouter:
    """The pages."""
    endpoints = APIRouter()
    endpoints.include_router(gap.router(desk, articles))
    endpoints.include_router(article.router(desk, articles))
    endpoints.include_router(doubt.router(desk))
    return endpoints

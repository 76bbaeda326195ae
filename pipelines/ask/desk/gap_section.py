"""The pages about what the knowledge base lacks, and how it gets better, together."""

from fastapi import APIRouter

from pipelines.ask.articles.usecase import Articles
from pipelines.ask.desk import article_pages, doubt_pages, gap_pages
from pipelines.ask.desk.view import Desk

ROUTES = (*gap_pages.ROUTES, *article_pages.ROUTES, *doubt_pages.ROUTES)


def router(desk: Desk, articles: Articles) -> APIRouter:
    """The pages."""
    endpoints = APIRouter()
    endpoints.include_router(gap_pages.router(desk))
    endpoints.include_router(article_pages.router(desk, articles))
    endpoints.include_router(doubt_pages.router(desk))
    return endpoints

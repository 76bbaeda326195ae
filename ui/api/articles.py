"""`/articles` over HTTP. The gate has checked the token and set the tenant."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from pipelines.ask.articles import from_chat
from pipelines.ask.articles.contract import (
    ArticleChange,
    ArticlePart,
    ArticleRequest,
    ArticlesAnswer,
    ListedPart,
    Publication,
    article_part,
)
from pipelines.ask.articles.usecase import Articles
from pipelines.gate import Route
from tenants.desk import articles
from tenants.desk.articles import MOST

_ALL, _ONE = "/articles", "/articles/{article_id}"
_PREVIEW, _PUBLISH, _WITHDRAW = (f"{_ONE}/{act}" for act in ("preview", "publish", "withdraw"))
_FROM_CHAT = "/desk/chats/{chat_id}/article"
_BODY_BYTES = 700_000
_SMALL = 1_000

ROUTES = (
    Route("GET", _ALL, scope="operate"),
    Route("POST", _ALL, scope="operate", body=ArticleRequest, limit=_BODY_BYTES),
    Route("GET", _ONE, scope="operate"),
    Route("PUT", _ONE, scope="operate", body=ArticleChange, limit=_BODY_BYTES),
    Route("DELETE", _ONE, scope="operate"),
    Route("POST", _PREVIEW, scope="operate", limit=_SMALL),
    Route("POST", _PUBLISH, scope="ingest", body=Publication, limit=_SMALL),
    Route("POST", _WITHDRAW, scope="ingest", limit=_SMALL),
    Route("POST", _FROM_CHAT, scope="ingest", limit=_SMALL),
)


def router(service: Articles) -> APIRouter:
    """The endpoints."""
    endpoints = APIRouter(tags=["articles"])

    @endpoints.get(_ALL)
    def list_articles(
        limit: Annotated[int, Query(ge=1, le=MOST)] = 50, offset: Annotated[int, Query(ge=0, le=MOST)] = 0
    ) -> ArticlesAnswer:
        """The articles that are written at the desk."""
        listed = articles.page(limit=limit, offset=offset)
        return ArticlesAnswer(articles=tuple(ListedPart(**asdict(one)) for one in listed))

    @endpoints.post(_ALL, status_code=201)
    def add_article(body: ArticleRequest) -> ArticlePart:
        """A new draft. Customers see nothing of it."""
        return article_part(articles.add(body.draft(), body.gaps or ()))

    @endpoints.get(_ONE)
    def show_article(article_id: str) -> ArticlePart:
        """One article with its draft and its last preview."""
        return article_part(articles.get(article_id))

    @endpoints.post(_FROM_CHAT)
    def write_from_chat(chat_id: str) -> ArticlePart:
        """A draft from what was asked and answered in a chat; the one that there is already, where there is."""
        return article_part(from_chat.write(chat_id))

    @endpoints.put(_ONE)
    def change_article(article_id: str, body: ArticleChange) -> ArticlePart:
        """Save a draft; 409 when somebody else has saved another version meanwhile."""
        return article_part(articles.put(article_id, body.draft(), body.version, body.gaps))

    @endpoints.delete(_ONE, status_code=204)
    def remove_article(article_id: str) -> None:
        """Delete a draft that is not published."""
        articles.remove(article_id)

    @endpoints.post(_PREVIEW, status_code=202)
    def begin_preview(article_id: str) -> ArticlePart:
        """Begin to ask what the article would change; `preview` of the article says how far that is."""
        return article_part(service.begin_preview(article_id))

    @endpoints.post(_PUBLISH)
    def publish(article_id: str, body: Publication) -> ArticlePart:
        """Put the article into the knowledge base, and close the gaps that it is written for."""
        return article_part(service.publish(article_id, body.version))

    @endpoints.post(_WITHDRAW)
    def withdraw(article_id: str) -> ArticlePart:
        """Take the article out of the knowledge base again."""
        return article_part(service.withdraw(article_id))

    return endpoints

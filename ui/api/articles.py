"""`/articles` over HTTP. The gate has checked the token and set the tenant."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, Field, StringConstraints

from components.turn import Trust
from pipelines.ask.articles import from_chat
from pipelines.ask.articles.preview import Preview, stored
from pipelines.ask.articles.usecase import Articles, drafted
from pipelines.routes import OpenRouter, opens
from tenants.core.validation import FrozenModel
from tenants.desk import articles
from tenants.desk.articles import (
    MAX_QUESTION_LENGTH,
    MAX_QUESTIONS,
    MAX_TEXT_LENGTH,
    MAX_TITLE_LENGTH,
    MOST,
    Article,
    Draft,
    ListedArticle,
)
from tenants.knowledge import gaps

_ALL, _ONE = "/articles", "/articles/{article_id}"
_PREVIEW, _PUBLISH, _WITHDRAW = (f"{_ONE}/{act}" for act in ("preview", "publish", "withdraw"))
_SMALL = 1_000

_Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
_Question = Annotated[str, StringConstraints(max_length=MAX_QUESTION_LENGTH)]
_Gaps = Annotated[tuple[_Id, ...], Field(max_length=gaps.MOST)]
_Version = Annotated[int, Field(ge=1, le=2**31 - 1)]


class ArticleRequest(FrozenModel):
    """A draft. `gaps` are the ids of the gaps that it is written for, `lang` empty: told by the text."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TITLE_LENGTH)]
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_LENGTH)] = ""
    questions: Annotated[tuple[_Question, ...], Field(max_length=MAX_QUESTIONS)] = ()
    lang: Literal["", "ru", "en"] = ""
    trust: Trust = "auto"
    gaps: _Gaps | None = None

    def draft(self) -> Draft:
        return drafted(self.title, self.text, self.questions, self.lang, self.trust)


class ArticleChange(ArticleRequest):
    """A changed draft. `version` is the version that the author edited; gaps that are not listed stay linked."""

    version: _Version


class Publication(FrozenModel):
    """Version of the draft to publish. Fails if a newer version exists."""

    version: _Version


class ArticlePart(ListedArticle):
    """An article. `doc_id` is the document that it is published as; `preview` what it would change, by the latest
    preview; `chat_id` the chat that it was written from."""

    doc_id: str
    text: str
    questions: tuple[str, ...]
    lang: str
    trust: str
    created_at: datetime
    created_by: str
    published_by: str | None
    preview: Preview | None
    chat_id: str | None


class ArticlesAnswer(BaseModel):
    """Articles, those changed last first."""

    articles: tuple[ListedArticle, ...]


def router(service: Articles) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=700_000, tags=["articles"])

    @endpoints.get(_ALL)
    def list_articles(
        limit: Annotated[int, Query(ge=1, le=MOST)] = 50, offset: Annotated[int, Query(ge=0, le=MOST)] = 0
    ) -> ArticlesAnswer:
        """List the articles written in the desk."""
        listed = articles.page(limit=limit, offset=offset)
        return ArticlesAnswer(articles=listed)

    @endpoints.post(_ALL, status_code=201)
    def add_article(body: ArticleRequest) -> ArticlePart:
        """Create a draft. Customers do not see it."""
        return article_part(articles.add(body.draft(), body.gaps or ()))

    @endpoints.get(_ONE)
    def show_article(article_id: str) -> ArticlePart:
        """Return an article with its draft and its last preview."""
        return article_part(articles.get(article_id))

    @endpoints.post("/desk/chats/{chat_id}/article")
    @opens(scope="ingest", limit=_SMALL)
    def write_from_chat(chat_id: str) -> ArticlePart:
        """Create a draft from a chat's question and answer. Returns the existing draft if there is one."""
        return article_part(from_chat.write(chat_id))

    @endpoints.put(_ONE)
    def change_article(article_id: str, body: ArticleChange) -> ArticlePart:
        """Save a draft. Returns 409 if a newer version has been saved in the meantime."""
        return article_part(articles.put(article_id, body.draft(), body.version, body.gaps))

    @endpoints.delete(_ONE, status_code=204)
    def remove_article(article_id: str) -> None:
        """Delete an unpublished draft."""
        articles.remove(article_id)

    @endpoints.post(_PREVIEW, status_code=202)
    @opens(limit=_SMALL)
    def begin_preview(article_id: str) -> ArticlePart:
        """Start a preview of the article's effect on answers; the article's `preview` shows its progress."""
        return article_part(service.begin_preview(article_id))

    @endpoints.post(_PUBLISH)
    @opens(scope="ingest", limit=_SMALL)
    async def publish(article_id: str, body: Publication) -> ArticlePart:
        """Publish the article to the knowledge base and close its gaps."""
        return article_part(await service.publish_in_turn(article_id, body.version))

    @endpoints.post(_WITHDRAW)
    @opens(scope="ingest", limit=_SMALL)
    def withdraw(article_id: str) -> ArticlePart:
        """Remove the article from the knowledge base."""
        return article_part(service.withdraw(article_id))

    return endpoints


def article_part(article: Article) -> ArticlePart:
    own = {"doc_id": article.doc_id, "preview": stored(article)}
    return ArticlePart.model_validate({**asdict(article), **asdict(article.draft), **own})

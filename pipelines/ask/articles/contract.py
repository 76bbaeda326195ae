"""Requests and responses of `/articles`, over HTTP and as JSON on the command line."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from components.turn import Trust
from pipelines.ask.articles.preview import Preview, stored
from pipelines.ask.articles.usecase import drafted
from tenants.desk.articles import (
    MAX_QUESTION_LENGTH,
    MAX_QUESTIONS,
    MAX_TEXT_LENGTH,
    MAX_TITLE_LENGTH,
    Article,
    Draft,
    ListedArticle,
)
from tenants.knowledge.gaps import MOST

_Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
_Question = Annotated[str, StringConstraints(max_length=MAX_QUESTION_LENGTH)]
_Version = Annotated[int, Field(ge=1, le=2**31 - 1)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ArticleRequest(_Request):
    """A draft. `gaps` are the ids of the gaps that it is written for, `lang` empty: told by the text."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TITLE_LENGTH)]
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT_LENGTH)] = ""
    questions: Annotated[tuple[_Question, ...], Field(max_length=MAX_QUESTIONS)] = ()
    lang: Literal["", "ru", "en"] = ""
    trust: Trust = "auto"
    gaps: Annotated[tuple[_Id, ...], Field(max_length=MOST)] | None = None

    def draft(self) -> Draft:
        return drafted(self.title, self.text, self.questions, self.lang, self.trust)


class ArticleChange(ArticleRequest):
    """A changed draft. `version` is the version that the author edited; gaps that are not listed stay linked."""

    version: _Version


class Publication(_Request):
    """Version of the draft to publish. Fails if a newer version exists."""

    version: _Version


class ArticlePart(ListedArticle):
    """An article. `doc_id` is the document that it is published as; `preview` what it would change, as last asked;
    `chat_id` the chat that it was written from."""

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


def article_part(article: Article) -> ArticlePart:
    own = {"doc_id": article.doc_id, "preview": stored(article)}
    return ArticlePart.model_validate({**asdict(article), **asdict(article.draft), **own})

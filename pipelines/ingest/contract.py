"""Request and response of `POST /ingest/run`."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from components.ingest.document import SourceDocument
from tenants.core.validation import FrozenModel

_Short = Annotated[str, StringConstraints(max_length=500)]


class Article(BaseModel):
    """An article. Unlisted keys are stored as its metadata."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, JsonValue]

    doc_id: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    title: _Short = ""
    text: str
    source: _Short = ""
    url: Annotated[str, StringConstraints(max_length=2_000)] | None = None
    lang: Literal["", "ru", "en"] = ""

    def to_document(self) -> SourceDocument:
        own = {name: getattr(self, name) for name in type(self).model_fields}
        return SourceDocument(**own, meta=self.__pydantic_extra__)


class IngestRequest(FrozenModel):
    """Articles to add or replace by `doc_id`. Articles that are not in the request stay."""

    documents: Annotated[tuple[Article, ...], Field(min_length=1, max_length=10_000, fail_fast=True)]

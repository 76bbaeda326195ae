"""`/documents`: document management over HTTP; `opora document` prints the same answers."""

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import date, datetime
from typing import Annotated, Self

from fastapi import Query
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    JsonValue,
    StrictInt,
    StringConstraints,
    model_validator,
)

from components.ingest.inspection import InspectedChunk
from components.turn import DocumentStatus, Trust
from pipelines.ingest.library import Library
from pipelines.routes import OpenRouter
from settings import Settings
from tenants.core.json import Json
from tenants.core.validation import FrozenModel
from tenants.knowledge import document_edges
from tenants.knowledge.catalogue import Page, Selection
from tenants.knowledge.document_edges import Edge
from tenants.knowledge.versions import DocumentVersion

_LIST = "/documents"
_DOCUMENT = "/documents/{doc_id:path}"
MAX_LISTED = 500
MAX_VERSION = 2**31 - 1
"""Largest number of the column."""

Id = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Day = Annotated[str, AfterValidator(lambda day: date.fromisoformat(day).isoformat())]
_Word = Annotated[str, StringConstraints(max_length=200)]
_Tag = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Words = Annotated[tuple[_Word, ...], Field(max_length=100)]


class DocumentFilter(FrozenModel):
    """Selection of documents. An omitted field matches all; an empty list matches nothing."""

    doc_ids: Annotated[tuple[Id, ...], Field(max_length=1_000)] | None = None
    statuses: tuple[DocumentStatus, ...] | None = None
    trust: tuple[Trust, ...] | None = None
    tags: _Words | None = None
    project_keys: _Words | None = None
    evidence_tiers: _Words | None = None
    source_types: _Words | None = None
    languages: _Words | None = None
    words: _Word = Field("", description="Text that the title or the id contains.")
    flagged: bool | None = Field(None, description="Whether the text needs an operator's attention.")
    stale: bool | None = Field(None, description="Whether recent answers cite the document although it is in doubt.")
    date_from: Day | None = None
    date_to: Day | None = None

    def selection(self) -> Selection:
        return Selection(**{part.name: getattr(self, part.name) for part in fields(Selection)})


class DocumentsQuery(DocumentFilter):
    """A page of the list."""

    after: str = Field("", max_length=500, description="`next` of the page before.")
    limit: int = Field(50, ge=1, le=MAX_LISTED)


class DocumentQuery(FrozenModel):
    """Parts of a document to return besides its record."""

    include: str = Field("", pattern=r"^((text|chunks|versions|edges)(,|$))*$", description="Parts, joined by commas.")
    version: int | None = Field(
        None, ge=1, le=MAX_VERSION, description="Version of the text to return; null: the current one."
    )

    def parts(self) -> frozenset[str]:
        return frozenset(self.include.split(","))


class Properties(FrozenModel):
    """Properties that override the source. An omitted property is unchanged; null restores the source's value."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    status: DocumentStatus | None = None
    trust: Trust | None = None
    priority: Annotated[StrictInt, Field(ge=0, le=100)] | None = None
    tags: Annotated[list[_Tag], Field(max_length=50)] | None = None
    project_key: _Word | None = None
    evidence_tier: _Word | None = None
    source_type: _Word | None = None

    def changes(self) -> dict[str, Json]:
        return self.model_dump(exclude_unset=True, exclude={"version"})


class DocumentChange(Properties):
    """A change of one document: restore another version, set properties, or both in this order."""

    version: Annotated[StrictInt, Field(ge=1, le=MAX_VERSION)] | None = None


class DocumentsChange(FrozenModel):
    """Set the same properties on all matching documents. Requires a condition, so that none changes all by accident."""

    filter: DocumentFilter
    set: Properties

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.filter.model_fields_set or not self.set.model_fields_set:
            raise ValueError("field_missing")
        return self


class DocumentPart(BaseModel, from_attributes=True):
    """A stored document without its text.

    `given` holds the source's values of the properties that an operator may set, `overrides` the operators' values.
    """

    doc_id: str
    title: str
    status: str
    trust: str
    priority: int
    tags: tuple[str, ...]
    project_key: str
    evidence_tier: str
    source_type: str
    source: str
    url: str | None
    lang: str
    updated_at: str
    ingested_at: datetime | None
    version: int
    chunk_count: int
    flags: tuple[str, ...]
    given: dict[str, JsonValue]
    overrides: dict[str, JsonValue]


class VersionPart(BaseModel):
    """A version that can be gone back to."""

    version: int
    title: str
    source: str
    created_at: datetime | None
    in_force: bool


class DocumentAnswer(DocumentPart):
    """A document. The last four fields are null unless requested."""

    text: str | None = None
    chunks: tuple[InspectedChunk, ...] | None = None
    versions: tuple[VersionPart, ...] | None = None
    edges: tuple[Edge, ...] | None = None


class DocumentsAnswer(BaseModel):
    """A page of documents. `next` goes into `after` for the page that follows, null on the last."""

    documents: tuple[DocumentPart, ...]
    total: int
    next: str | None


class ChangedAnswer(BaseModel):
    """Number of selected documents."""

    documents: int


class RemovedAnswer(BaseModel):
    """A removed document and how many chunks it had."""

    doc_id: str
    chunks: int


def router(library: Library, settings: Settings) -> OpenRouter:
    """Return the endpoints. Plain functions, so that each runs in a thread and does not block questions."""
    endpoints = OpenRouter("ingest", limit=settings.max_body_bytes, tags=["documents"])

    @endpoints.get(_LIST)
    def list_documents(query: Annotated[DocumentsQuery, Query()]) -> DocumentsAnswer:
        """List the matching documents, page by page."""
        return documents_answer(library.page(query.selection(), after=query.after, limit=query.limit))

    @endpoints.patch(_LIST)
    def change_documents(body: DocumentsChange) -> ChangedAnswer:
        """Set properties of all matching documents."""
        return ChangedAnswer(documents=library.change_all(body.filter.selection(), body.set.changes()))

    @endpoints.get(_DOCUMENT)
    def read_document(doc_id: str, query: Annotated[DocumentQuery, Query()]) -> DocumentAnswer:
        """Return one document with the parts named in `include`."""
        return document_answer(library, doc_id, query)

    @endpoints.patch(_DOCUMENT)
    def change_document(doc_id: str, body: DocumentChange) -> DocumentAnswer:
        """Restore an earlier version or set properties."""
        library.change(doc_id, body.changes(), version=body.version)
        return document_answer(library, doc_id, DocumentQuery())

    @endpoints.delete(_DOCUMENT)
    def remove_document(doc_id: str) -> RemovedAnswer:
        """Remove a document with its versions and edges."""
        return RemovedAnswer(doc_id=doc_id, chunks=library.delete(doc_id))

    return endpoints


def document_answer(library: Library, doc_id: str, query: DocumentQuery) -> DocumentAnswer:
    """Return the document as callers see it, with the parts that were asked for. Raises `NotFound`."""
    record, parts = library.read(doc_id), query.parts()
    return DocumentAnswer(
        **dict(DocumentPart.model_validate(record)),
        text=library.version(doc_id, query.version).text if "text" in parts else None,
        chunks=library.chunks(doc_id) if "chunks" in parts else None,
        versions=_version_parts(library.versions(doc_id), record.version) if "versions" in parts else None,
        edges=document_edges.of(doc_id) if "edges" in parts else None,
    )


def documents_answer(page: Page) -> DocumentsAnswer:
    return DocumentsAnswer(documents=page.documents, total=page.total, next=page.following)


def _version_parts(versions: Iterable[DocumentVersion], in_force: int) -> tuple[VersionPart, ...]:
    return tuple(
        VersionPart.model_validate({**asdict(version), "in_force": version.version == in_force}) for version in versions
    )

"""`/documents`: document management over HTTP."""

from typing import Annotated

from fastapi import Query

from pipelines.ingest.library import Library
from pipelines.ingest.library_contract import (
    ChangedAnswer,
    DocumentAnswer,
    DocumentChange,
    DocumentQuery,
    DocumentsAnswer,
    DocumentsChange,
    DocumentsQuery,
    RemovedAnswer,
    document_answer,
    documents_answer,
)
from pipelines.routes import OpenRouter
from settings import Settings

_LIST = "/documents"
_DOCUMENT = "/documents/{doc_id:path}"


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

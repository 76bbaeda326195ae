"""Pages of a tenant's documents: search, view, edit properties, compare and restore versions, link, remove.

An id may be any text, including a path or a URL, so it is sent in the query and in fields, never in the path.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args
from urllib.parse import urlencode, urlsplit

from fastapi import Form, Query
from pydantic import BaseModel, Field, StringConstraints
from starlette.responses import Response

from components.language.texts import LOCALES
from components.turn import DocumentStatus, EdgeKind, Trust
from pipelines import problems
from pipelines.ingest.library import Library
from pipelines.routes import OpenRouter
from tenants.core.errors import CallerError, Invalid
from tenants.core.json import Json
from tenants.knowledge import catalogue, document_edges, freshness, votes
from tenants.knowledge.catalogue import Selection
from tenants.knowledge.documents import DocumentRecord
from ui.desk import document_view
from ui.desk.rendering import Desk, back_to, names, or_again, reader_locale

_LIST = "/desk/documents"
_ONE = "/desk/documents/one"
_PAGE = 50
_CHUNKS = 20
_OFFERED = 300
"""Number of documents that a field for another document suggests."""

_Id: TypeAlias = Annotated[str, Query(alias="id", min_length=1, max_length=500)]
_FormId: TypeAlias = Annotated[str, Form(alias="id", min_length=1, max_length=500)]
_Word: TypeAlias = Annotated[str, Form(max_length=200)]
_Stripped: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
_Number: TypeAlias = Annotated[int, Query(ge=1, le=10**9)]
_Part: TypeAlias = Literal["chunks", "properties", "versions", "ties"]
_Done: TypeAlias = Annotated[Literal["", "saved", "restored", "tied", "untied", "removed"], Query()]


class PropertiesForm(BaseModel):
    doc_id: Annotated[str, Field(alias="id", min_length=1, max_length=500)]
    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
    status: DocumentStatus
    trust: Trust
    priority: Annotated[int, Field(ge=0, le=100)]
    tags: Annotated[str, Field(max_length=10_000)] = ""
    project_key: _Stripped = ""
    evidence_tier: _Stripped = ""
    source_type: _Stripped = ""

    def wanted(self) -> dict[str, Json]:
        tags = [label for part in self.tags.split(",") if (label := part.strip())]
        return {**self.model_dump(exclude={"doc_id"}), "tags": tags}


def router(desk: Desk, library: Library) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=50_000, page=True, include_in_schema=False)

    @endpoints.get(_LIST)
    def list_documents(
        q: Annotated[str, Query(max_length=200)] = "",
        status: Annotated[DocumentStatus | Literal[""], Query()] = "",
        trust: Annotated[Trust | Literal[""], Query()] = "",
        lang: Annotated[str, Query(max_length=20)] = "",
        flagged: bool = False,
        stale: bool = False,
        after: Annotated[str, Query(max_length=500)] = "",
        done: _Done = "",
    ) -> Response:
        selection = Selection(
            statuses=(status,) if status else None,
            trust=(trust,) if trust else None,
            languages=(_readable(lang),) if lang else None,
            words=_readable(q),
            flagged=True if flagged else None,
            stale=True if stale else None,
        )
        chosen = {"q": q, "status": status, "trust": trust, "lang": lang}
        chosen |= {name: "true" if on else "" for name, on in (("flagged", flagged), ("stale", stale))}
        return desk.page(
            "documents/list.html",
            section="documents",
            page=library.page(selection, after=_readable(after), limit=_PAGE),
            doubts={one.doc_id: one for one in freshness.stale()} if stale else {},
            chosen=chosen,
            filtered=any(chosen.values()),
            query=urlencode({name: value for name, value in chosen.items() if value}),
            statuses=get_args(DocumentStatus),
            trusts=get_args(Trust),
            languages=LOCALES,
            flag_texts=document_view.flag_texts,
            first=not after,
            done=done,
        )

    @endpoints.get(_ONE)
    def show_document(
        doc_id: _Id,
        show: Annotated[_Part, Query()] = "chunks",
        start: Annotated[int, Query(alias="from", ge=1, le=10**6)] = 1,
        version: Annotated[_Number | None, Query()] = None,
        done: _Done = "",
    ) -> Response:
        record = library.read(_readable(doc_id))
        return _document(desk, library, record, show, start=start, version=version, done=done)

    def again(refused: CallerError, doc_id: str, part: _Part, **typed: Any) -> Response:  # noqa: ANN401
        return _document(desk, library, library.read(_readable(doc_id)), part, refused, **typed)

    @endpoints.post(f"{_LIST}/set")
    @or_again(lambda refused, form: again(refused, form.doc_id, "properties", wanted=form.wanted()), CallerError)
    def set_properties(form: Annotated[PropertiesForm, Form()]) -> Response:
        record = library.read(_readable(form.doc_id))
        if changes := document_view.changes(record, form.wanted()):
            library.change(record.doc_id, changes)
        return _back(record, "properties", "saved")

    @endpoints.post(f"{_LIST}/restore")
    @or_again(lambda refused, doc_id, **_: again(refused, doc_id, "versions"), CallerError)
    def restore(doc_id: _FormId, version: Annotated[int, Form(ge=1, le=10**9)]) -> Response:
        record = library.read(_readable(doc_id))
        library.restore(record.doc_id, version)
        return _back(record, "versions", "restored")

    @endpoints.post(f"{_LIST}/remove")
    @or_again(lambda refused, doc_id, **_: again(refused, doc_id, "properties"), Invalid)
    def remove(doc_id: _FormId, sure: Annotated[bool, Form()] = False) -> Response:
        record = library.read(_readable(doc_id))
        if not sure:
            raise Invalid("removal_unsure")
        library.delete(record.doc_id)
        return back_to(f"{_LIST}?done=removed")

    @endpoints.post(f"{_LIST}/tie")
    @or_again(lambda refused, doc_id, other, **_: again(refused, doc_id, "ties", other=other), CallerError)
    def tie(
        doc_id: _FormId,
        choice: _Word,
        other: Annotated[str, Form(min_length=1, max_length=500)],
        weight: Annotated[float, Form(ge=0, le=1, allow_inf_nan=False)] = 1.0,
    ) -> Response:
        record = library.read(_readable(doc_id))
        document_edges.put(document_view.edge_between(record.doc_id, choice, _readable(other).strip(), weight))
        return _back(record, "ties", "tied")

    @endpoints.post(f"{_LIST}/untie")
    @or_again(lambda refused, doc_id, **_: again(refused, doc_id, "ties"), CallerError)
    def untie(
        doc_id: _FormId,
        from_doc: Annotated[str, Form(min_length=1, max_length=500)],
        kind: Annotated[EdgeKind, Form()],
        to_doc: Annotated[str, Form(min_length=1, max_length=500)],
    ) -> Response:
        record = library.read(_readable(doc_id))
        document_edges.remove(_readable(from_doc), kind, _readable(to_doc))
        return _back(record, "ties", "untied")

    return endpoints


def _back(record: DocumentRecord, part: _Part, done: str) -> Response:
    return back_to(f"{_ONE}?{urlencode({'id': record.doc_id, 'show': part, 'done': done})}")


def _document(
    desk: Desk,
    library: Library,
    record: DocumentRecord,
    part: _Part,
    refused: CallerError | None = None,
    *,
    start: int = 1,
    version: int | None = None,
    done: str = "",
    wanted: Mapping[str, Json] | None = None,
    other: str = "",
) -> Response:
    """Return the page of a document.

    :param wanted: submitted but rejected properties, `other` the other document of the edge.
    """
    locale = reader_locale()
    first = min(start, max(len(record.chunk_ids), 1)) - 1
    parts: dict[str, object] = {}
    if part == "chunks":
        parts = {"chunks": library.chunks(record.doc_id, first=first, limit=_CHUNKS), "start": first + 1}
    elif part == "versions":
        parts = _versions(library, record, version)
    elif part == "ties":
        offered = catalogue.page(catalogue.EVERYTHING, limit=_OFFERED).documents
        known = document_view.ties(record.doc_id, document_edges.of(record.doc_id))
        parts = {"ties": known, "choices": document_view.TIES, "offered": offered}
    return desk.page(
        "documents/one.html",
        refused,
        section="documents",
        record=record,
        votes=votes.count(record.doc_id, record.version),
        show=part,
        parts=get_args(_Part),
        page_size=_CHUNKS,
        link=record.url if record.url and urlsplit(record.url).scheme in ("http", "https") else "",
        flags=document_view.flag_texts(record.flags, locale),
        flag_texts=document_view.flag_texts,
        statuses=get_args(DocumentStatus),
        trusts=get_args(Trust),
        wanted=wanted,
        other=other,
        done=done,
        fault=_in_words(refused, locale) if refused is not None else "",
        **parts,
    )


def _versions(library: Library, record: DocumentRecord, number: int | None) -> dict[str, object]:
    listed: dict[str, object] = {"versions": library.versions(record.doc_id), "opened": None, "difference": None}
    if number is not None:
        opened, now = library.version(record.doc_id, number), library.version(record.doc_id)
        listed["opened"] = opened
        if number != record.version:
            listed["difference"] = document_view.difference(opened.text, now.text)
    return listed


def _in_words(refused: CallerError, locale: str) -> str:
    if isinstance(refused, Invalid) and "field" in refused.params:
        field = names(locale)("documents.property", str(refused.params["field"]))
        refused = Invalid(refused.code, **{**refused.params, "field": field})
    return problems.detail(refused)


def _readable(text: str) -> str:
    """Remove NUL, which no database stores in text."""
    return text.replace("\0", "")

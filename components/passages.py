"""Documents of Haystack as typed passages, and back."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, get_args

from haystack import Document

from components.language.sentences import sentence_spans
from components.turn import DocumentStatus, Passage, Trust
from tenants.core.json import Json

SEARCH = "search"
"""Among `meta["scores"]`: the score of the search, 1 for the best hit by words and by meaning."""

_TRUST = get_args(Trust)
_STATUS = get_args(DocumentStatus)


class Chunk(Document):
    """A document that is never changed, so that Haystack's copies of it between steps cost nothing."""

    def __deepcopy__(self, memo: object) -> Self:
        return self


def from_payload(payload: Mapping[str, Json], score: float, scores: Mapping[str, float]) -> Document:
    """Return a document from what `components/ingest` stored: `{content, meta}`."""
    stored: Mapping[str, Any] = payload
    meta: dict[str, Any] = {**stored["meta"], "scores": scores}
    return Chunk(id=meta["chunk_id"], content=stored["content"], meta=meta, score=score)


def to_passage(document: Document) -> Passage:
    """Return the typed view of a document. A document of another store may lack any of our metadata."""
    meta, text = document.meta, document.content or ""
    sentences = meta.get("sentences")
    return Passage(
        chunk_id=str(meta.get("chunk_id") or document.id),
        doc_id=str(meta.get("doc_id") or meta.get("source_id") or document.id),
        title=str(meta.get("title") or ""),
        heading=str(meta.get("heading") or ""),
        text=text,
        sentences=tuple((start, end) for start, end in sentences)
        if sentences is not None
        else tuple(sentence_spans(text)),
        chunk_index=int(meta.get("chunk_index") or 0),
        section=_section(meta),
        begins_earlier=bool(meta.get("begins_earlier")),
        continues=bool(meta.get("continues")),
        gap=int(meta.get("gap") or 0),
        place=str(meta.get("place") or ""),
        source=str(meta.get("source") or meta.get("file_path") or ""),
        url=meta.get("url"),
        lang=str(meta.get("lang") or ""),
        trust=meta["trust"] if meta.get("trust") in _TRUST else "raw",
        status=meta["status"] if meta.get("status") in _STATUS else "active",
        priority=int(meta.get("priority") or 0),
        updated_at=str(meta.get("updated_at") or ""),
        score=document.score or 0.0,
        scores=meta.get("scores") or {},
    )


def to_passages(documents: Sequence[Document]) -> tuple[Passage, ...]:
    """Return the typed views of documents."""
    return tuple(map(to_passage, documents))


def with_meta(document: Document, score: float | None = None, **meta: object) -> Document:
    """Return the document with another score and further metadata."""
    return Chunk(
        id=document.id,
        content=document.content,
        meta={**document.meta, **meta},
        score=document.score if score is None else score,
    )


def relevance(document: Document) -> float:
    """Return the judge's probability (0..1) that the document answers; the score where no judge has seen it."""
    return float(document.meta.get("relevance", document.score or 0.0))


def in_force(passage: Passage, superseded: Container[str]) -> Passage:
    """Return the passage with the status that the edges between documents leave it.

    :param superseded: ids of documents that another one supersedes.
    """
    if passage.status == "active" and passage.doc_id in superseded:
        return replace(passage, status="superseded")
    return passage


def _section(meta: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the first and the last chunk of the section; None where the chunk is all of it."""
    first, last = meta.get("section_chunks") or (0, 0)
    return (first, last) if last > first else None

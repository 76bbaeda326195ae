"""Stored payloads as passages."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any, get_args

from components.turn import DocumentStatus, Passage, Trust
from tenants.index.protocol import Json

_TRUST = get_args(Trust)
_STATUS = get_args(DocumentStatus)


def from_payload(payload: Mapping[str, Json], score: float, scores: Mapping[str, float]) -> Passage:
    """A `Passage` from what `components/ingest` stored: `{content, meta}`."""
    # The payload is JSON that we wrote ourselves; its shape is the contract suite's to check, not every question's.
    stored: Mapping[str, Any] = payload
    meta: Mapping[str, Any] = stored["meta"]
    return Passage(
        chunk_id=meta["chunk_id"],
        doc_id=meta["doc_id"],
        title=meta["title"],
        heading=meta["heading"],
        text=stored["content"],
        sentences=tuple((start, end) for start, end in meta["sentences"]),
        chunk_index=meta["chunk_index"],
        section=_section(meta),
        source=meta["source"],
        url=meta["url"],
        lang=meta["lang"],
        trust=meta["trust"] if meta["trust"] in _TRUST else "raw",
        status=meta["status"] if meta["status"] in _STATUS else "active",
        priority=meta["priority"],
        updated_at=meta["updated_at"],
        score=score,
        scores=scores,
    )


def _section(meta: Mapping[str, Any]) -> tuple[int, int] | None:
    """None for a chunk that is a whole section, and for chunks stored before sections were recorded."""
    first, last = meta.get("section_chunks") or (0, 0)
    return (first, last) if last > first else None


def in_force(passage: Passage, superseded: Container[str]) -> Passage:
    """The passage with the status that the edges between documents leave it.

    :param superseded: ids of documents that another one supersedes.
    """
    return (
        replace(passage, status="superseded")
        if passage.status == "active" and passage.doc_id in superseded
        else passage
    )

"""Chunks into the index, the record and the lexicon, in an order that a crash cannot harm.

1. New chunks are stored and kept ones described; the old version is still whole.
2. The document's record is written; from here on the new version is the one in force.
3. Chunks that only the old version had are removed, and the lexicon is told.

What a crash leaves over is chunks that no record names. The lexicon knows that a run was cut off, and the next run
begins with `components.ingest.reconcile`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from haystack import component

from components.ingest.document import Chunk, Revision
from components.ingest.kept import kept_record, kept_version
from components.ingest.terms import chunk_terms, stored_terms
from components.language.encoder import VERSION, encode_passage
from components.turn import Frozen
from tenants import documents as stored_documents
from tenants import fairness, lexicon, versions, writing
from tenants.documents import DocumentRecord
from tenants.index import open_collection
from tenants.index.protocol import Hit, Json, Point
from tenants.lexicon import ChunkTerms


@dataclass(frozen=True, slots=True)
class Written(Frozen):
    """What one batch changed. `chunks_written` were encoded; `chunks_kept` were not."""

    added: int = 0
    updated: int = 0
    chunks_written: int = 0
    chunks_kept: int = 0
    chunks_removed: int = 0


@component
class ChunkWriter:
    """Brings the stored chunks of documents in line with their new revisions."""

    @component.output_types(written=Written)
    def run(self, revisions: list[Revision]) -> dict[str, Written]:
        """Write revisions for the tenant in context. Everything is durable when it returns."""
        if not revisions:
            return {"written": Written()}
        with writing.alone():
            return {"written": _write(revisions)}


def _write(given: Sequence[Revision]) -> Written:
    collection = open_collection(create=True)
    records = stored_documents.find([revision.document.doc_id for revision in given])
    revisions = [_overridden(revision, records.get(revision.document.doc_id)) for revision in given]
    chunks = [chunk for revision in revisions for chunk in revision.chunks]
    stored = {hit.id: hit for hit in collection.fetch([chunk.chunk_id for chunk in chunks])}
    missing = [chunk for chunk in chunks if _differs(chunk, stored.get(chunk.chunk_id))]
    encoded = {chunk.chunk_id for chunk in missing}
    collection.upsert([_point(chunk) for chunk in missing])
    collection.describe(_redescribed(chunks, stored, encoded))
    _put(given, revisions, records)
    named = {chunk.chunk_id for chunk in chunks}
    stale = [old for record in records.values() for old in record.chunk_ids if old not in named]
    gone = collection.fetch(stale)
    collection.delete(stale)
    replaced = [stored[chunk.chunk_id] for chunk in missing if chunk.chunk_id in stored]
    lexicon.apply(map(_terms, missing), map(stored_terms, [*gone, *replaced]))
    return Written(
        added=len(revisions) - len(records),
        updated=len(records),
        chunks_written=len(missing),
        chunks_kept=len(chunks) - len(missing),
        chunks_removed=len(gone),
    )


def _overridden(revision: Revision, record: DocumentRecord | None) -> Revision:
    """The revision with what an operator has set in place of what its source says."""
    overrides = revision.overrides
    if overrides is None:
        overrides = record.overrides if record else {}
    chunks = tuple(replace(chunk, meta={**chunk.meta, **overrides}) for chunk in revision.chunks)
    return replace(revision, chunks=chunks, overrides=overrides)


def _put(given: Sequence[Revision], revisions: Sequence[Revision], records: Mapping[str, DocumentRecord]) -> None:
    """The records of what is stored now, each with a new version unless its text and all beside it is the same."""
    known = versions.hashes(list(records))
    new_records, new_versions = [], []
    for source, revision in zip(given, revisions, strict=True):
        doc_id = revision.document.doc_id
        number = records[doc_id].version if doc_id in records else 0
        version = kept_version(revision.document, revision.title, number + 1)
        if version.content_hash != known.get(doc_id):
            new_versions.append(version)
            number += 1
        new_records.append(kept_record(revision, source.chunks[0].meta, number))
    stored_documents.put(*new_records, new_versions=new_versions)


def remove_documents(doc_ids: Iterable[str]) -> int:
    """Forget documents of the tenant in context, then their chunks. Returns the number of chunks removed."""
    with writing.alone():
        records = stored_documents.find(list(doc_ids))
        if not records:
            return 0
        collection = open_collection(create=True)
        stored_documents.remove(*records)
        stale = [chunk_id for record in records.values() for chunk_id in record.chunk_ids]
        gone = collection.fetch(stale)
        collection.delete(stale)
        lexicon.apply((), map(stored_terms, gone))
        return len(gone)


def _differs(chunk: Chunk, hit: Hit | None) -> bool:
    """Whether the stored vectors, if any, are of another text. The id covers all of it but the title."""
    if hit is None:
        return True
    meta = hit.payload["meta"]
    return not isinstance(meta, Mapping) or meta.get("title") != chunk.meta["title"] or meta.get("encoder") != VERSION


def _redescribed(
    chunks: Iterable[Chunk], stored: Mapping[str, Hit], encoded: set[str]
) -> dict[str, Mapping[str, Json]]:
    payloads = {chunk.chunk_id: _payload(chunk) for chunk in chunks if chunk.chunk_id not in encoded}
    return {chunk_id: payload for chunk_id, payload in payloads.items() if payload != stored[chunk_id].payload}


def _point(chunk: Chunk) -> Point:
    fairness.give_way()
    vectors = encode_passage(str(chunk.meta["title"]), chunk.heading, chunk.text)
    return Point(chunk.chunk_id, vectors, _payload(chunk))


def _payload(chunk: Chunk) -> dict[str, Json]:
    return {"id": chunk.chunk_id, "content": chunk.text, "meta": dict(chunk.meta)}


def _terms(chunk: Chunk) -> ChunkTerms:
    fairness.give_way()
    return chunk_terms(str(chunk.meta["title"]), chunk.heading, chunk.text)

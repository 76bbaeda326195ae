"""Chunks into the index, the record and the lexicon, in an order that a crash cannot harm.

1. New chunks are stored and unchanged ones described; the old version is still whole.
2. What the document declares of others is noted, then its record is written: from here on the new version is the one
   in force.
3. Chunks that only the old version had are removed, and the lexicon is updated.

A crash can leave chunks that no record names. The lexicon marks an interrupted run, and the next run begins with
`components.ingest.reconcile`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from haystack import component

from components.embed.dense import settings_of
from components.embed.protocol import Embedder
from components.ingest.document import Chunk, Flagged, Revision
from components.ingest.encode import (
    Text,
    embedded,
    encoded,
    stored_meta,
    stored_terms,
    stored_text,
    terms_of,
    text_of,
)
from components.ingest.metadata import declared_edges, declared_rejected
from components.ingest.records import description, document_record, document_version
from components.language.encoder_settings import EncoderSettings, settings_from
from components.turn import Frozen
from tenants.core import fairness
from tenants.core.json import Json
from tenants.core.points import Dense, Hit
from tenants.index import open_collection
from tenants.index.protocol import Collection
from tenants.knowledge import documents as stored_documents
from tenants.knowledge import lexicon, relations, versions, writing
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.lexicon import ChunkTerms
from tenants.knowledge.versions import DocumentVersion

_STORED_AT_ONCE = 512
"""Chunks of one flush to the disk, whose vectors are held until then: 20 kB each."""

Prepared: TypeAlias = Mapping[Text, Dense]
"""Dense vectors of chunks, computed before they are written. Missing ones are computed while writing."""


@dataclass(frozen=True, slots=True)
class WriteCounts(Frozen):
    """Changes made by one batch. `chunks_written` counts encoded chunks, `chunks_unchanged` the reused ones."""

    added: int = 0
    updated: int = 0
    chunks_written: int = 0
    chunks_unchanged: int = 0
    chunks_removed: int = 0
    flagged: tuple[Flagged, ...] = ()


@component
class ChunkWriter:
    """Brings the stored chunks of documents in line with their new revisions.

    :param encoder: the settings (`components.language.encoder_settings`) for a tenant's first chunks. A tenant that has
        some keeps the settings that these were encoded by until its index is rebuilt.
    :param embedder: embedder for dense vectors; without an available embedder, chunks have no dense vectors.
    """

    def __init__(self, encoder: dict[str, Json] | None = None, embedder: Embedder | None = None) -> None:
        self.encoder = encoder
        self.embedder = embedder
        dense = settings_of(embedder) if embedder and embedder.available else None
        self.settings = EncoderSettings.model_validate({**(encoder or {}), "dense": dense})

    @component.output_types(written=WriteCounts)
    def run(self, revisions: list[Revision], prepared: Prepared | None = None) -> dict[str, WriteCounts]:
        """Write revisions for the tenant in context. Everything is durable when it returns.

        :param prepared: the result of `prepare` for them, if there is one.
        """
        if not revisions:
            return {"written": WriteCounts()}
        prepared = self.prepare(revisions) if prepared is None else prepared
        with writing.alone():
            return {"written": _write(revisions, self.settings, prepared)}

    def prepare(self, revisions: Sequence[Revision]) -> Prepared:
        """Compute the dense vectors of revisions, the slowest part of writing them, while others may still write."""
        if not revisions:
            return {}
        collection = open_collection()
        settings = settings_from(collection.encoder or self.settings.json_form)
        records = stored_documents.find([revision.document.doc_id for revision in revisions])
        chunks = [chunk for revision in revisions for chunk in _described_as(revision, _overrides(revision, records))]
        stored = _stored(collection, chunks)
        missing = [text_of(chunk) for chunk in chunks if _differs(chunk, stored.get(chunk.chunk_id))]
        return embedded(missing, settings)


@dataclass(frozen=True, slots=True)
class FinalRevision:
    """A revision in its stored form.

    :param record: document record to store after its chunks.
    :param version: version to store; None if the current version is the same.
    """

    revision: Revision
    record: DocumentRecord
    version: DocumentVersion | None


def _open(first: EncoderSettings) -> Collection:
    return open_collection(create=True, encoder=first.json_form, dimensions=first.dimensions)


def _stored(collection: Collection, chunks: Iterable[Chunk]) -> dict[str, Hit]:
    return {hit.id: hit for hit in collection.fetch([chunk.chunk_id for chunk in chunks])}


def _write(revisions: Sequence[Revision], first: EncoderSettings, prepared: Prepared) -> WriteCounts:
    collection = _open(first)
    settings = settings_from(collection.encoder)
    records = stored_documents.find([revision.document.doc_id for revision in revisions])
    settled = finalised(revisions, records)
    chunks = [chunk for entry in settled for chunk in entry.revision.chunks]
    stored = _stored(collection, chunks)
    missing = [chunk for chunk in chunks if _differs(chunk, stored.get(chunk.chunk_id))]
    new_ids = {chunk.chunk_id for chunk in missing}
    terms = _store(collection, missing, settings, prepared)
    collection.describe(_redescribed(chunks, stored, new_ids))
    # Before the records: a run cut off here finds the documents changed, and declares it all again.
    relations.declare(
        [entry.record.doc_id for entry in settled],
        [edge for entry in settled for edge in declared_edges(entry.revision.document)],
        [approach for entry in settled for approach in declared_rejected(entry.revision.document)],
    )
    stored_documents.put(
        *(entry.record for entry in settled), new_versions=[entry.version for entry in settled if entry.version]
    )
    named = {chunk.chunk_id for chunk in chunks}
    stale = [old for record in records.values() for old in record.chunk_ids if old not in named]
    removed = collection.fetch(stale)
    collection.delete(stale)
    # Counted is what a record names. An index may hold chunks that none did: of a write whose answer never came, of a
    # time that the database was set back to.
    named_before = {chunk_id for record in records.values() for chunk_id in record.chunk_ids}
    adopted = [hit for hit in stored.values() if hit.id not in new_ids | named_before]
    replaced = [hit for hit in stored.values() if hit.id in new_ids & named_before]
    lexicon.apply([*terms, *map(stored_terms, adopted)], map(stored_terms, [*removed, *replaced]))
    return WriteCounts(
        added=len(revisions) - len(records),
        updated=len(records),
        chunks_written=len(missing),
        chunks_unchanged=len(chunks) - len(missing),
        chunks_removed=len(removed),
        flagged=tuple(Flagged(entry.record.doc_id, entry.record.flags) for entry in settled if entry.record.flags),
    )


def finalised(revisions: Iterable[Revision], records: Mapping[str, DocumentRecord]) -> list[FinalRevision]:
    """Return the revisions in their stored form, with the operators' overrides applied.

    :param records: records of the documents that the tenant already has.
    """
    hashes = versions.hashes(list(records))
    settled = []
    for revision in revisions:
        fairness.yield_to_questions()
        record = records.get(revision.document.doc_id)
        number = record.version if record else 0
        version = document_version(revision.document, revision.title, number + 1)
        same = record is not None and version.content_hash == hashes.get(record.doc_id)
        overrides = _overrides(revision, records)
        # A document that is only processed again has not changed today.
        day = {"updated_at": record.updated_at} if record and same else {}
        final = replace(revision, chunks=_described_as(revision, {**overrides, **day}))
        source_meta = revision.chunks[0].meta
        settled.append(
            FinalRevision(
                final,
                document_record(final, number if same else number + 1, source_meta, overrides),
                None if same else version,
            )
        )
    return settled


def _overrides(revision: Revision, records: Mapping[str, DocumentRecord]) -> Mapping[str, Json]:
    """Return the operator's overrides of the document."""
    record = records.get(revision.document.doc_id)
    return record.overrides if record else {}


def _described_as(revision: Revision, overrides: Mapping[str, Json]) -> tuple[Chunk, ...]:
    """Return the chunks with `own` instead of the source's metadata."""
    if not overrides:
        return revision.chunks
    return tuple(replace(chunk, meta={**chunk.meta, **overrides}) for chunk in revision.chunks)


def redescribe(records: Iterable[DocumentRecord], prepared: Prepared = MappingProxyType({})) -> int:
    """Bring the stored chunks of documents in line with their records. Only under another title are they encoded anew.

    :param prepared: the result of `reembedded` for the same records, if there is one.
    :returns: how many were encoded.
    """
    with writing.alone():
        collection = open_collection(create=True)
        settings = settings_from(collection.encoder)
        described = _described(collection, records)
        retitled = _retitled(described)
        chunks = [_stored_chunk(hit, meta) for hit, meta in retitled]
        new_ids = {hit.id for hit, _ in retitled}
        terms = _store(collection, chunks, settings, prepared)
        collection.describe(
            {
                hit.id: {**hit.payload, "meta": meta}
                for hit, meta in described
                if hit.id not in new_ids and meta != stored_meta(hit)
            }
        )
        if chunks:
            lexicon.apply(terms, (stored_terms(hit) for hit, _ in retitled))
        return len(chunks)


def reembedded(records: Iterable[DocumentRecord]) -> Prepared:
    """Compute the dense vectors that `redescribe` needs.

    Call it before you write the records, so that a failing model leaves everything unchanged.
    """
    collection = open_collection()
    settings = settings_from(collection.encoder)
    retitled = _retitled(_described(collection, records))
    return embedded((replace(stored_text(hit), title=str(meta["title"])) for hit, meta in retitled), settings)


def _described(collection: Collection, records: Iterable[DocumentRecord]) -> list[tuple[Hit, Mapping[str, Json]]]:
    """Return the stored chunks of documents, each with the metadata that its record gives it."""
    owners = {chunk_id: record for record in records for chunk_id in record.chunk_ids}
    return [(hit, {**stored_meta(hit), **description(owners[hit.id])}) for hit in collection.fetch(list(owners))]


def _retitled(described: Iterable[tuple[Hit, Mapping[str, Json]]]) -> list[tuple[Hit, Mapping[str, Json]]]:
    return [(hit, meta) for hit, meta in described if meta["title"] != stored_meta(hit)["title"]]


def _stored_chunk(hit: Hit, meta: Mapping[str, Json]) -> Chunk:
    return Chunk(str(hit.payload["content"]), str(meta["heading"]), int(str(meta["chunk_index"])), hit.id, meta=meta)


def remove_documents(doc_ids: Iterable[str]) -> int:
    """Forget documents of the tenant in context, then their chunks. Returns the number of chunks removed."""
    with writing.alone():
        records = stored_documents.find(list(doc_ids))
        if not records:
            return 0
        collection = open_collection(create=True)
        stored_documents.remove(*records)
        stale = [chunk_id for record in records.values() for chunk_id in record.chunk_ids]
        removed = collection.fetch(stale)
        collection.delete(stale)
        lexicon.apply((), map(stored_terms, removed))
        return len(removed)


def _differs(chunk: Chunk, hit: Hit | None) -> bool:
    """Return whether the stored vectors, if any, are of another text. The id covers all of it but the title."""
    if hit is None:
        return True
    meta = hit.payload["meta"]
    return not isinstance(meta, Mapping) or meta.get("title") != chunk.meta["title"]


def _redescribed(
    chunks: Iterable[Chunk], stored: Mapping[str, Hit], new_ids: set[str]
) -> dict[str, Mapping[str, Json]]:
    payloads = {chunk.chunk_id: payload_of(chunk) for chunk in chunks if chunk.chunk_id not in new_ids}
    return {chunk_id: payload for chunk_id, payload in payloads.items() if payload != stored[chunk_id].payload}


def _store(
    collection: Collection, chunks: Sequence[Chunk], settings: EncoderSettings, prepared: Prepared
) -> list[ChunkTerms]:
    """Encode and store chunks. Returns what each adds to the lexicon."""
    texts = [text_of(chunk) for chunk in chunks]
    # Before anything is stored, so that a failure leaves nothing half done.
    dense = embedded(texts, settings, prepared)
    for start in range(0, len(chunks), _STORED_AT_ONCE):
        batch = zip(texts[start : start + _STORED_AT_ONCE], chunks[start : start + _STORED_AT_ONCE], strict=True)
        collection.upsert([encoded(text, payload_of(chunk), settings, dense) for text, chunk in batch])
    return [terms_of(text) for text in texts]


def payload_of(chunk: Chunk) -> dict[str, Json]:
    """Return the payload to store with the vectors of a chunk."""
    return {"id": chunk.chunk_id, "content": chunk.text, "meta": dict(chunk.meta)}

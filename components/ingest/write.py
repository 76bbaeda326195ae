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
from components.ingest.document import Chunk, Flagged, Refusal, Revision
from components.ingest.encode import Payload, Text, embedded, encoded, meta_of, payload_of, terms_of, text_of
from components.ingest.metadata import declared_edges, declared_rejected
from components.ingest.records import description, document_record, document_version
from components.language.encoder_settings import EncoderSettings, settings_from
from components.turn import Frozen
from settings import get_settings
from tenants.core import fairness
from tenants.core.batches import batches
from tenants.core.errors import CallerError, Invalid, TooLarge
from tenants.core.json import Json
from tenants.core.points import Dense
from tenants.index import open_collection
from tenants.index.protocol import Collection
from tenants.knowledge import document_edges, lexicon, relations, versions, writing
from tenants.knowledge import documents as stored_documents
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.lexicon import ChunkTerms
from tenants.knowledge.versions import DocumentVersion

NO_ROOM = frozenset({"knowledge_base_full", "relations_too_many"})
"""Refusals of `within_limit`."""
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
    """Update the stored chunks of documents to match their new revisions.

    :param encoder: the settings (`components.language.encoder_settings`) for a tenant's first chunks. A tenant that
        has chunks keeps the settings they were encoded with until its index is rebuilt.
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
        payloads = _payloads(chunk for revision in revisions for chunk in _overridden(revision, records))
        return embedded(_missing(payloads, _stored(collection, payloads)).values(), settings)


def within_limit(revisions: Sequence[Revision]) -> tuple[list[Revision], list[Refusal]]:
    """Return the revisions that the knowledge base has room for, and refusals of the others.

    Threat: one tenant fills the disk that all tenants share, or its relations the memory. A document that does not grow
    is always written.
    """
    limit = get_settings().max_chunks
    doc_ids = [revision.document.doc_id for revision in revisions]
    records = stored_documents.find(doc_ids) if limit else {}
    room = limit - open_collection().count() if limit else 0
    declared = [len(declared_edges(one.document)) + len(declared_rejected(one.document)) for one in revisions]
    room_for_relations, related = relations.room_of(doc_ids) if any(declared) else (0, {})
    fitting, refusals = list[Revision](), list[Refusal]()
    for revision, own in zip(revisions, declared, strict=True):
        document = revision.document
        record = records.get(document.doc_id)
        growth = len(revision.chunks) - (record.chunk_count if record else 0) if limit else 0
        more = own - related.get(document.doc_id, 0)
        error: CallerError
        if growth > max(0, room):
            error = TooLarge("knowledge_base_full", limit=limit)
        elif more > max(0, room_for_relations):
            error = Invalid("relations_too_many", limit=document_edges.MAX_RELATIONS)
        else:
            room -= growth
            room_for_relations -= more
            fitting.append(revision)
            continue
        refusals.append(Refusal(error, document.source, document.line, document.doc_id))
    return fitting, refusals


@dataclass(frozen=True, slots=True)
class FinalRevision:
    """A revision in its stored form.

    :param record: document record to store after its chunks.
    :param version: version to store; None if the current version is the same.
    """

    revision: Revision
    record: DocumentRecord
    version: DocumentVersion | None


def _payloads(chunks: Iterable[Chunk]) -> dict[str, Payload]:
    return {chunk.chunk_id: payload_of(chunk) for chunk in chunks}


def _stored(collection: Collection, chunk_ids: Iterable[str]) -> dict[str, Payload]:
    return {hit.id: hit.payload for hit in collection.fetch(list(chunk_ids))}


def _missing(payloads: Mapping[str, Payload], stored: Mapping[str, Payload]) -> dict[str, Payload]:
    """Return the chunks whose stored vectors, if any, are of another text.

    The id covers all of it but the title and the keywords.
    """
    return {
        chunk_id: payload
        for chunk_id, payload in payloads.items()
        if chunk_id not in stored or text_of(stored[chunk_id]) != text_of(payload)
    }


def _write(revisions: Sequence[Revision], first: EncoderSettings, prepared: Prepared) -> WriteCounts:
    collection = open_collection(create=True, encoder=first.json_form, dimensions=first.dimensions)
    settings = settings_from(collection.encoder)
    records = stored_documents.find([revision.document.doc_id for revision in revisions])
    settled = finalised(revisions, records)
    payloads = _payloads(chunk for entry in settled for chunk in entry.revision.chunks)
    stored = _stored(collection, payloads)
    missing = _missing(payloads, stored)
    terms = _store(collection, list(missing.values()), settings, prepared)
    collection.describe(_redescribed(payloads, stored))
    # Before the records: a run cut off here finds the documents changed, and declares it all again.
    relations.declare(
        [entry.record.doc_id for entry in settled],
        [edge for entry in settled for edge in declared_edges(entry.revision.document)],
        [approach for entry in settled for approach in declared_rejected(entry.revision.document)],
    )
    stored_documents.put(
        *(entry.record for entry in settled), new_versions=[entry.version for entry in settled if entry.version]
    )
    named_before = {chunk_id for record in records.values() for chunk_id in record.chunk_ids}
    stale = [chunk_id for chunk_id in named_before if chunk_id not in payloads]
    removed = _stored(collection, stale)
    collection.delete(stale)
    # Counted is what a record names. An index may hold chunks that none did: of a write whose answer never came, of a
    # time that the database was set back to.
    adopted = [stored[chunk_id] for chunk_id in stored if chunk_id not in missing and chunk_id not in named_before]
    replaced = [stored[chunk_id] for chunk_id in stored if chunk_id in missing and chunk_id in named_before]
    lexicon.apply([*terms, *map(terms_of, adopted)], map(terms_of, [*removed.values(), *replaced]))
    return WriteCounts(
        added=len(revisions) - len(records),
        updated=len(records),
        chunks_written=len(missing),
        chunks_unchanged=len(payloads) - len(missing),
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
        # A document that is only processed again has not changed today.
        day = {"updated_at": record.updated_at} if record and same else {}
        final = replace(revision, chunks=_overridden(revision, records, day))
        source_meta = revision.chunks[0].meta
        overrides = record.overrides if record else {}
        settled.append(
            FinalRevision(
                final,
                document_record(final, number if same else number + 1, source_meta, overrides),
                None if same else version,
            )
        )
    return settled


def _overridden(
    revision: Revision, records: Mapping[str, DocumentRecord], more: Mapping[str, Json] = MappingProxyType({})
) -> tuple[Chunk, ...]:
    """Return the chunks with the operator's overrides, and `more`, in place of the source's metadata."""
    record = records.get(revision.document.doc_id)
    own = {**(record.overrides if record else {}), **more}
    return tuple(replace(chunk, meta={**chunk.meta, **own}) for chunk in revision.chunks) if own else revision.chunks


def redescribe(records: Iterable[DocumentRecord], prepared: Prepared = MappingProxyType({})) -> int:
    """Bring the stored chunks of documents in line with their records. Only under another title are they encoded anew.

    :param prepared: the result of `reembedded` for the same records, if there is one.
    :returns: how many were encoded.
    """
    with writing.alone():
        collection = open_collection(create=True)
        settings = settings_from(collection.encoder)
        stored, payloads = _described(collection, records)
        retitled = _missing(payloads, stored)
        terms = _store(collection, list(retitled.values()), settings, prepared)
        collection.describe(_redescribed(payloads, stored))
        if retitled:
            lexicon.apply(terms, (terms_of(stored[chunk_id]) for chunk_id in retitled))
        return len(retitled)


def reembedded(records: Iterable[DocumentRecord]) -> Prepared:
    """Compute the dense vectors that `redescribe` needs.

    Call it before you write the records, so that a failing model leaves everything unchanged.
    """
    collection = open_collection()
    settings = settings_from(collection.encoder)
    stored, payloads = _described(collection, records)
    return embedded(_missing(payloads, stored).values(), settings)


def _described(
    collection: Collection, records: Iterable[DocumentRecord]
) -> tuple[dict[str, Payload], dict[str, Payload]]:
    """Return the stored chunks of documents, and the same with the metadata that their records give them."""
    owners = {chunk_id: record for record in records for chunk_id in record.chunk_ids}
    stored = _stored(collection, owners)
    described: dict[str, Payload] = {
        chunk_id: {**payload, "meta": {**meta_of(payload), **description(owners[chunk_id])}}
        for chunk_id, payload in stored.items()
    }
    return stored, described


def remove_documents(doc_ids: Iterable[str]) -> int:
    """Forget documents of the tenant in context, then their chunks. Returns the number of chunks removed."""
    with writing.alone():
        records = stored_documents.find(list(doc_ids))
        if not records:
            return 0
        collection = open_collection(create=True)
        stored_documents.remove(*records)
        stale = [chunk_id for record in records.values() for chunk_id in record.chunk_ids]
        removed = _stored(collection, stale)
        collection.delete(stale)
        lexicon.apply((), map(terms_of, removed.values()))
        return len(removed)


def _redescribed(payloads: Mapping[str, Payload], stored: Mapping[str, Payload]) -> dict[str, Payload]:
    """Return the chunks whose vectors stay and whose description changes."""
    missing = _missing(payloads, stored)
    return {
        chunk_id: payload
        for chunk_id, payload in payloads.items()
        if chunk_id not in missing and payload != stored[chunk_id]
    }


def _store(
    collection: Collection, payloads: Sequence[Payload], settings: EncoderSettings, prepared: Prepared
) -> list[ChunkTerms]:
    """Encode and store chunks. Returns what each adds to the lexicon."""
    # Before anything is stored, so that a failure leaves nothing half done.
    dense = embedded(payloads, settings, prepared)
    for batch in batches(payloads, _STORED_AT_ONCE):
        collection.upsert([encoded(payload, settings, dense) for payload in batch])
    return list(map(terms_of, payloads))

"""Checks whether records, index and lexicon of a tenant agree, and repairs them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from components.ingest.document import Revision
from components.ingest.encode import meta_of, terms_of
from components.ingest.records import description, source_document
from components.ingest.write import redescribe
from components.turn import Frozen
from tenants.core import fairness
from tenants.core.errors import IndexDamaged, TryAgain
from tenants.core.json import Json
from tenants.core.points import Hit
from tenants.index import open_collection
from tenants.index.protocol import Collection
from tenants.knowledge import documents, generations, lexicon, versions
from tenants.knowledge.documents import DocumentRecord
from tenants.knowledge.lexicon import ChunkTerms
from tenants.work import uploads

_BATCH = 500
_DOCUMENTS = 64
"""Documents rewritten at once: some hundred chunks, one flush to the disk."""

Rewrite: TypeAlias = Callable[[Sequence[Revision]], object]
"""Writes documents through the ingest pipeline, like new ones."""


@dataclass(frozen=True, slots=True)
class Findings(Frozen):
    """Inconsistencies between records, index and lexicon.

    :param damage: the index is `missing`, `unreadable` or `incomplete`; nothing else was compared then.
    :param documents: how many records were compared; `chunks` how many stored chunks.
    :param orphans: chunks that no record names, by id.
    :param incomplete: documents that miss a chunk, by id.
    :param misdescribed: documents whose chunks disagree with the record, by id.
    :param lexicon_differs: the counted terms are not those of the chunks.
    :param uploads: files of jobs that are over, by job.
    """

    documents: int = 0
    chunks: int = 0
    orphans: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    misdescribed: tuple[str, ...] = ()
    lexicon_differs: bool = False
    uploads: tuple[str, ...] = ()
    damage: str | None = None

    @property
    def clean(self) -> bool:
        """Return whether there are no inconsistencies."""
        differs = self.orphans or self.incomplete or self.misdescribed or self.lexicon_differs or self.uploads
        return not differs and self.damage is None

    def as_json(self) -> dict[str, Json]:
        """Return the findings for a program."""
        return {
            "damage": self.damage,
            "documents": self.documents,
            "chunks": self.chunks,
            "orphaned_chunks": self.orphans,
            "incomplete_documents": self.incomplete,
            "misdescribed_documents": self.misdescribed,
            "lexicon_differs": self.lexicon_differs,
            "leftover_uploads": self.uploads,
            "clean": self.clean,
        }


def compare(*, count: bool = False) -> Findings:
    """Compare records and chunks of the tenant in context, both ways. There must be no concurrent writer.

    :param count: compare the lexicon too, which takes analysing every chunk.
    """
    records = {record.doc_id: record for record in documents.all()}
    owners = {chunk_id: record for record in records.values() for chunk_id in record.chunk_ids}
    present: set[str] = set()
    orphans: list[str] = []
    misdescribed: set[str] = set()

    def examined() -> Iterator[ChunkTerms]:
        for hit in _every_chunk(open_collection()):
            present.add(hit.id)
            owner = owners.get(hit.id)
            if owner is None:
                orphans.append(hit.id)
            elif not _matches_record(hit, owner):
                misdescribed.add(owner.doc_id)
            if count:
                yield terms_of(hit.payload)

    lexicon_differs = lexicon.differs(examined())
    return Findings(
        documents=len(records),
        chunks=len(present),
        orphans=tuple(sorted(orphans)),
        incomplete=tuple(doc_id for doc_id, record in records.items() if not present.issuperset(record.chunk_ids)),
        misdescribed=tuple(sorted(misdescribed)),
        lexicon_differs=count and lexicon_differs,
        uploads=uploads.abandoned(),
    )


def repair(findings: Findings, rewrite: Rewrite) -> None:
    """Make index and lexicon agree with the records again. There must be no concurrent writer.

    A document that misses chunks is rewritten from its stored text. Where that does not bring them back, its record
    names what is there, and its content hash is cleared: it matches no source any more, so the next run over its source
    writes it.
    """
    if findings.orphans:
        collection = open_collection(create=True)
        for start in range(0, len(findings.orphans), _BATCH):
            collection.delete(findings.orphans[start : start + _BATCH])
    for start in range(0, len(findings.incomplete), _DOCUMENTS):
        _rewrite(findings.incomplete[start : start + _DOCUMENTS], rewrite)
    for start in range(0, len(findings.misdescribed), _BATCH):
        redescribe(documents.find(findings.misdescribed[start : start + _BATCH]).values())
    for job_id in findings.uploads:
        uploads.remove(job_id)
    if findings.lexicon_differs:
        recount()


def _rewrite(doc_ids: Sequence[str], rewrite: Rewrite) -> None:
    records = documents.find(doc_ids)
    revisions = [
        Revision(source_document(version), records[version.doc_id].content_hash)
        for version in versions.in_force(doc_ids)
    ]
    if revisions:
        rewrite(revisions)
    for record in documents.find(doc_ids).values():
        present = tuple(hit.id for hit in open_collection().fetch(record.chunk_ids))
        if len(present) < len(record.chunk_ids):
            documents.put(replace(record, content_hash="", chunk_ids=present))


def recount(generation: int | None = None) -> None:
    """Recount the lexicon of the tenant in context from its chunks. There must be no concurrent writer.

    If the lexicon lacks a code, customers read that the knowledge base does not mention it. So the lexicon is counted
    from all chunks that the records name, or left unchanged: raises `TryAgain` if the index could not be read
    completely, `IndexDamaged` if chunks are missing.

    :param generation: of `tenants.knowledge.generations`; the one in force when None.
    """
    lexicon.rebuild(_terms(open_collection(generation=generation)), generation)


def _terms(collection: Collection) -> Iterator[ChunkTerms]:
    chunks = 0
    for hit in _every_chunk(collection):
        yield terms_of(hit.payload)
        chunks += 1
    if chunks < generations.recorded_chunks():
        raise IndexDamaged("incomplete")


def _every_chunk(collection: Collection) -> Iterator[Hit]:
    """Yield all chunks. A server may end a scroll early without an error; `TryAgain` then."""
    seen = 0
    for hit in collection.scan():
        fairness.yield_to_questions()
        seen += 1
        yield hit
    if seen != collection.count():
        raise TryAgain("index_unavailable")


def _matches_record(hit: Hit, record: DocumentRecord) -> bool:
    meta = meta_of(hit.payload)
    return all(name in meta and meta[name] == value for name, value in description(record).items())

"""Chunks from one generation of an index to another, each encoded as the other one is."""

from collections.abc import Iterator, Sequence
from itertools import islice

from components.ingest.encode import embedded, encoded, text_of
from components.language.encoder_settings import settings_from
from tenants.core.points import Hit
from tenants.index.protocol import Collection
from tenants.knowledge import documents

BATCH = 128
"""Chunks at a time: two slices of the engine, one flush to the disk."""


def transfer(source: Collection, target: Collection, *, copies_vectors: bool) -> Iterator[int]:
    """Store every chunk that a record names in `target` too, batch by batch. Yields how many each batch had.

    What is written to `source` meanwhile may be missed; `align` makes up for it.

    :param copies_vectors: copy dense vectors if both have the same space, because computing them takes longest.
    """
    named = {chunk_id for record in documents.all() for chunk_id in record.chunk_ids}
    copied = copies_vectors and _shared(source, target)
    chunks = (hit for hit in source.scan(batch=BATCH, dense=copied) if hit.id in named)
    while batch := list(islice(chunks, BATCH)):
        yield _store(batch, target)


def align(source: Collection, target: Collection, changed: frozenset[str]) -> int:
    """Bring `target` in line with the records, whose chunks are in `source`. There must be no concurrent writer.

    :param changed: the documents of whose chunks in `target` nothing is known, by id.
    :returns: how many chunks `target` must have now.
    """
    records = documents.all()
    named = {chunk_id for record in records for chunk_id in record.chunk_ids}
    present = {hit.id for hit in target.scan()}
    target.delete(list(present - named))
    outdated = [
        chunk_id
        for record in records
        for chunk_id in record.chunk_ids
        if chunk_id not in present or record.doc_id in changed
    ]
    for start in range(0, len(outdated), BATCH):
        _store(source.fetch(outdated[start : start + BATCH], dense=_shared(source, target)), target)
    return len(named)


def _store(hits: Sequence[Hit], target: Collection) -> int:
    settings = settings_from(target.encoder)
    known = {text_of(hit.payload): hit.dense for hit in hits if hit.dense is not None}
    dense = embedded([hit.payload for hit in hits], settings, known)
    target.upsert([encoded(hit.payload, settings, dense) for hit in hits])
    return len(hits)


def _shared(source: Collection, target: Collection) -> bool:
    """Return whether both have the same space of dense vectors."""
    space, other_space = settings_from(source.encoder).dense, settings_from(target.encoder).dense
    return space is not None and other_space is not None and space.space == other_space.space

"""Chunks from one generation of an index to another, each encoded anew with the settings of the other one.

Vectors are not copied: the model may be another one under the same name, such as a real server's after the simulator's.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from components.ingest.encode import embedded, encoded
from components.language.encoder_settings import settings_from
from tenants.core.points import Hit
from tenants.index.protocol import Collection
from tenants.knowledge import documents

BATCH = 128
"""Chunks at a time: two slices of the engine, one flush to the disk."""


def transfer(source: Collection, target: Collection) -> Iterator[int]:
    """Store every chunk that a record names in `target` too, batch by batch. Yields how many each batch had.

    What is written to `source` meanwhile may be missed; `align` makes up for it.
    """
    named = {chunk_id for record in documents.all() for chunk_id in record.chunk_ids}
    chunks = (hit for hit in source.scan(batch=BATCH) if hit.id in named)
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
        _store(source.fetch(outdated[start : start + BATCH]), target)
    return len(named)


def _store(hits: Sequence[Hit], target: Collection) -> int:
    settings = settings_from(target.encoder)
    dense = embedded([hit.payload for hit in hits], settings)
    target.upsert([encoded(hit.payload, settings, dense) for hit in hits])
    return len(hits)

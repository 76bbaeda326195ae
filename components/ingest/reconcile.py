"""Putting right what a run that was cut off left behind."""

from dataclasses import replace

from components.ingest.terms import stored_terms
from tenants import documents, lexicon
from tenants.index import open_collection

_BATCH = 500


def reconcile() -> int:
    """Remove chunks that no record names, and open the records whose chunks are missing, for the tenant in context.

    An opened record matches no document, so that ingesting its document again writes what is missing.

    :returns: how many chunks were removed.
    """
    collection = open_collection(create=True)
    records = documents.all()
    named = {chunk_id for record in records for chunk_id in record.chunk_ids}
    present = {hit.id for hit in collection.scan()}
    orphans = list(present - named)
    for start in range(0, len(orphans), _BATCH):
        collection.delete(orphans[start : start + _BATCH])
    opened = [replace(record, content_hash="") for record in records if not present.issuperset(record.chunk_ids)]
    if opened:
        documents.put(*opened)
    return len(orphans)


def recount() -> None:
    """Count the lexicon of the tenant in context anew from its chunks, and close the run."""
    lexicon.rebuild(stored_terms(hit) for hit in open_collection(create=True).scan())

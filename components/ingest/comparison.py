"""Contradictions between documents, found in the background: after an ingest run and once a night."""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from components.judge.contradictions import contradictions
from components.language.encoder import encode_query
from components.language.encoder_settings import settings_from
from components.passages import from_payload, to_passage
from components.turn import Passage
from tenants.core import fairness
from tenants.core.batches import batches
from tenants.core.errors import trail
from tenants.core.points import Hit, Vector
from tenants.index import DENSE, SPARSE, open_collection
from tenants.index.protocol import Collection
from tenants.knowledge import contradictions as stored
from tenants.knowledge import documents
from tenants.knowledge.contradictions import Contradiction, Side

log = logging.getLogger("opora.ingest")

AFTER_A_RUN = 300
"""Passages compared at the end of an ingest run, which takes a second or two. The nightly run does the rest."""
A_NIGHT = 5_000
_NEAREST = 10
_BATCH = 32
"""Documents whose contradictions are stored at once."""
STEP = 16
"""Passages compared in a row: some 50 ms, with a busy Qdrant server half a second."""


def compare(doc_ids: Sequence[str], passages: int = AFTER_A_RUN) -> Iterator[None]:
    """Find the contradictions of documents anew, each passage compared with those nearest to it.

    Yields after every `STEP` passages. A failure is logged: nothing but the list of contradictions depends on it.

    :param passages: no further document is begun once this many passages have been compared.
    """
    compared = 0
    try:
        for batch in batches(doc_ids, _BATCH):
            if compared >= passages:
                return
            records = documents.find(batch)
            chunk_ids = [chunk_id for record in records.values() for chunk_id in record.chunk_ids]
            found: list[Contradiction] = []
            for some in batches(chunk_ids, STEP):
                found += _pairs(some)
                yield
            stored.replace(list(records), found)
            compared += len(chunk_ids)
    except Exception as error:
        log.warning("contradictions are not up to date: %s", trail(error))


def compare_some() -> None:
    """Compare a part of all documents, another one each day, so that large knowledge bases have their turn, too."""
    records = documents.all()
    total = sum(len(record.chunk_ids) for record in records)
    turns = -(-total // A_NIGHT) or 1
    size = -(-len(records) // turns)
    start = datetime.now(UTC).toordinal() % turns * size
    for _ in compare([record.doc_id for record in islice(records, start, start + size)], 2 * A_NIGHT):
        pass


def _pairs(chunk_ids: Sequence[str]) -> Iterator[Contradiction]:
    collection = open_collection()
    for hit in collection.fetch(chunk_ids, dense=True):
        fairness.yield_to_questions()
        passage = _passage(hit)
        for other in _nearest(collection, hit, passage):
            for kind, span, other_span in islice(contradictions(passage, other), 1):
                side = Side(passage.chunk_id, passage.doc_id, *span)
                yield Contradiction(kind, side, Side(other.chunk_id, other.doc_id, *other_span), datetime.now(UTC))


def _nearest(collection: Collection, hit: Hit, passage: Passage) -> Iterator[Passage]:
    """Yield the passages of other documents nearest to this one, by words and, where the index has them, by vectors."""
    words = encode_query(f"{passage.title}\n{passage.heading}\n{passage.text}", settings_from(collection.encoder))
    queries: dict[str, Vector] = {SPARSE: words} if words else {}
    if hit.dense is not None:
        queries[DENSE] = hit.dense
    if not queries:
        return
    found = collection.search(queries, limit=_NEAREST, payloads=False)
    ids = dict.fromkeys(near.id for hits in found.values() for near in hits)
    yield from (near for near in map(_passage, collection.fetch(list(ids))) if near.doc_id != passage.doc_id)


def _passage(hit: Hit) -> Passage:
    return to_passage(from_payload(hit.payload, 0.0, {}))

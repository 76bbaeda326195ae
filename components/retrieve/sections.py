"""The whole section of a passage, from the index."""

from collections.abc import Mapping
from dataclasses import replace

from components.retrieve.passages import from_payload
from components.turn import Passage
from tenants import documents
from tenants.index import open_collection

_AROUND = 6
"""Most chunks on either side of the passage: far more than an answer shows."""


def section_of(passage: Passage, available: Mapping[str, Passage]) -> tuple[Passage, ...]:
    """The chunks of a passage's section in reading order, itself among them. Costs one read of the records and one of
    the index, where the section is more than the passage and not all of it is known.

    :param known: passages already retrieved, by chunk id; these are not read again.
    """
    if passage.section is None:
        return (passage,)
    first, last = passage.section
    at = passage.chunk_index
    record = documents.get(passage.doc_id)
    ids = record.chunk_ids if record else ()
    if at >= len(ids) or ids[at] != passage.chunk_id:
        # The document has been written anew since the search.
        return (passage,)
    section_ids = ids[max(first, at - _AROUND) : min(last, at + _AROUND) + 1]
    by_id = {passage.chunk_id: passage} | {
        chunk_id: available[chunk_id] for chunk_id in section_ids if chunk_id in available
    }
    for hit in open_collection().fetch([chunk_id for chunk_id in section_ids if chunk_id not in by_id]):
        neighbour = from_payload(hit.payload, 0.0, {})
        by_id[neighbour.chunk_id] = replace(neighbour, status=passage.status)
    return tuple(by_id[chunk_id] for chunk_id in section_ids if chunk_id in by_id)

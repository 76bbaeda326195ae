"""Documents that contradict each other: the pairs of passages that were found when documents changed.

A pair leaves the list when a person decides on it, or when either passage is written anew.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from components.passages import from_payload, in_force, to_passage
from components.retrieve.reranker import precedence
from components.turn import Passage
from tenants.core.errors import NotFound
from tenants.index import open_collection
from tenants.knowledge import agreements, document_edges, relations
from tenants.knowledge.document_edges import SUPERSEDES, Edge

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class SidePassage:
    """A side of a contradiction; `sentence` contradicts the other side."""

    chunk_id: str
    doc_id: str
    title: str
    heading: str
    text: str
    trust: str
    updated_at: str
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two passages that say different things.

    :param kind: what they differ in: `number`, `date`, `code`, `negation`.
    :param trusted: the side that answers go by.
    :param at: when the pair was found.
    """

    kind: str
    trusted: SidePassage
    other: SidePassage
    at: datetime


def undecided() -> tuple[Contradiction, ...]:
    """Return the open contradictions, newest first.

    A pair is closed if one document supersedes the other; answers still mention the other one.
    """
    known = relations.current()
    pairs = dict.fromkeys(
        pair
        for pairs in known.contradictions.values()
        for pair in pairs
        if known.successors.get(pair.one.doc_id) != pair.other.doc_id
        and known.successors.get(pair.other.doc_id) != pair.one.doc_id
    )
    passages = _passages({side.chunk_id for pair in pairs for side in (pair.one, pair.other)})
    listed = []
    for pair in pairs:
        if pair.one.chunk_id in passages and pair.other.chunk_id in passages:
            sides = [(passages[side.chunk_id], side.start, side.end) for side in (pair.one, pair.other)]
            other, trusted = sorted(sides, key=lambda side: precedence(in_force(side[0], known.successors)))
            listed.append(Contradiction(pair.kind, _side(*trusted), _side(*other), pair.at))
    return tuple(sorted(listed, key=lambda pair: (pair.at, pair.trusted.chunk_id), reverse=True))


def supersede(newer: str, older: str) -> None:
    """Let a document go before another from now on. Raises `NotFound` with the code `document_unknown`."""
    document_edges.put(Edge(newer, SUPERSEDES, older))


def agree(chunk_id: str, other_chunk_id: str) -> None:
    """Note that two passages do not contradict each other. Raises `NotFound`, `pair_unknown`; `Invalid`,
    `pair_invalid`, for one and itself."""
    one, other = passage(chunk_id), passage(other_chunk_id)
    agreements.put(one.chunk_id, one.doc_id, other.chunk_id, other.doc_id)


def passage(chunk_id: str) -> SidePassage:
    found = _passages({chunk_id}).get(chunk_id) if _ID.fullmatch(chunk_id) else None
    if found is None:
        raise NotFound("pair_unknown")
    return _side(found)


def _passages(chunk_ids: set[str]) -> Mapping[str, Passage]:
    hits = open_collection().fetch(sorted(chunk_ids)) if chunk_ids else ()
    return {hit.id: to_passage(from_payload(hit.payload, 0.0, {})) for hit in hits}


def _side(found: Passage, start: int = 0, end: int = 0) -> SidePassage:
    return SidePassage(
        chunk_id=found.chunk_id,
        doc_id=found.doc_id,
        title=found.title,
        heading=found.heading,
        text=found.text,
        trust=found.trust,
        updated_at=found.updated_at,
        sentence=found.text[start:end],
    )

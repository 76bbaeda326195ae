"""Documents that contradict each other: the pairs of passages that the last answers met.

What two passages say is compared when a question is answered from both. A pair leaves the list when somebody decides
on it, or when either passage is written anew.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, ValidationError

from components.ingest.terms import stored_meta
from pipelines.ask.contract import SHOWN, ConflictPart
from tenants import agreements, edges, relations
from tenants.audit import search
from tenants.audit.search import Record, TurnQuery
from tenants.edges import SUPERSEDES, Edge
from tenants.errors import NotFound
from tenants.index import open_collection
from tenants.index.protocol import Hit

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LOOKED_AT = 500
"""The newest answers of each kind whose contradictions are listed."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Beside(_Part):
    conflicts: tuple[ConflictPart, ...] = ()


class _Meta(_Part):
    beside: _Beside = _Beside()


class _Answer(_Part):
    """The part of a recorded answer that is looked at; an older record may lack it."""

    meta: _Meta = _Meta()


@dataclass(frozen=True, slots=True)
class SidePassage:
    """One side of a contradiction as it stands in the knowledge base now."""

    chunk_id: str
    doc_id: str
    title: str
    heading: str
    text: str
    trust: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two passages that say different things.

    :param kind: what they differ in: `number`, `date`, `code`, `negation`.
    :param trusted: the side that answers went by.
    :param times: in how many of the answers looked at they met; `turn_id` and `at` are the last of them.
    """

    kind: str
    trusted: SidePassage
    other: SidePassage
    times: int
    turn_id: str
    at: datetime
    question: str


def met() -> tuple[Contradiction, ...]:
    """The undecided contradictions that the last answers met, the most frequent first."""
    known = relations.current()
    found: dict[frozenset[str], tuple[ConflictPart, Record, int]] = {}
    for record in _answers():
        for conflict in _conflicts(record):
            pair = frozenset((conflict.trusted, conflict.other))
            if len(pair) == 2 and pair not in known.agreed:
                newest, last, times = found.get(pair, (conflict, record, 0))
                found[pair] = newest, last, times + 1
    passages = _passages({chunk_id for pair in found for chunk_id in pair})
    listed = []
    for conflict, record, times in found.values():
        trusted, other = passages.get(conflict.trusted), passages.get(conflict.other)
        if trusted is None or other is None or _superseded(known.successors, trusted, other):
            continue
        listed.append(
            Contradiction(conflict.kind, trusted, other, times, record.turn_id, record.at, record.question or "")
        )
    return tuple(sorted(listed, key=lambda one: (-one.times, one.trusted.chunk_id)))


def supersede(newer: str, older: str) -> None:
    """Let a document go before another from now on. Raises `NotFound` with the code `document_unknown`."""
    edges.put(Edge(newer, SUPERSEDES, older))


def agree(chunk_id: str, other_chunk_id: str) -> None:
    """Note that two passages do not contradict each other. Raises `NotFound`, `pair_unknown`; `Invalid`,
    `pair_invalid`, for one and itself."""
    one, other = passage(chunk_id), passage(other_chunk_id)
    agreements.put(one.chunk_id, one.doc_id, other.chunk_id, other.doc_id)


def passage(chunk_id: str) -> SidePassage:
    """One passage. Raises `NotFound` with the code `pair_unknown`."""
    found = _passages({chunk_id}).get(chunk_id) if _ID.fullmatch(chunk_id) else None
    if found is None:
        raise NotFound("pair_unknown")
    return found


def _answers() -> list[Record]:
    """The last answers of each kind, the newest first."""
    answers = [record for kind in SHOWN for record in search.find(TurnQuery(outcome=kind), limit=LOOKED_AT)]
    return sorted(answers, key=lambda record: -record.sequence)


def _conflicts(record: Record) -> tuple[ConflictPart, ...]:
    try:
        return _Answer.model_validate((record.content or {}).get("answer", {})).meta.beside.conflicts
    except ValidationError:
        return ()


def _passages(chunk_ids: set[str]) -> Mapping[str, SidePassage]:
    return {hit.id: _side(hit) for hit in open_collection().fetch(sorted(chunk_ids))} if chunk_ids else {}


def _side(hit: Hit) -> SidePassage:
    meta = stored_meta(hit)
    return SidePassage(
        chunk_id=hit.id,
        doc_id=str(meta["doc_id"]),
        title=str(meta["title"]),
        heading=str(meta["heading"]),
        text=str(hit.payload["content"]),
        trust=str(meta["trust"]),
        updated_at=str(meta["updated_at"]),
    )


def _superseded(successors: Mapping[str, str], one: SidePassage, other: SidePassage) -> bool:
    return successors.get(one.doc_id) == other.doc_id or successors.get(other.doc_id) == one.doc_id

"""How many of a tenant's chunks hold each stem and each word: what rare means here, and how words are spelled here.

Stored as differences: an ingest batch adds one small row, so a vocabulary of 100,000 words is never rewritten for 64
chunks, and a reader that knows revision 7 reads only what came after it. Once there are many,
they are folded into one.

Counts follow the index but share no transaction with it. An ingest run therefore opens with `begin` and closes with
`finish`; where `begin` says that the run before it never finished, the counts may be off and the run must `rebuild`.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypedDict

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from settings import get_settings
from tenants import context, database
from tenants.fresh import Fresh, Key
from tenants.models import LexiconPartRow, LexiconStateRow, TenantRow

_FOLD_AFTER_RUN = 64
_FOLD_WITHIN_RUN = 512
"""Differences left alone. Folding 100,000 words takes a second, a difference of 64 chunks 20 ms."""


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """What one chunk, title and headings included, adds to the counts: each term once, however often it occurs."""

    stems: frozenset[str]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Document frequencies over the tenant's `chunks`. An equal `revision` of one tenant means equal counts."""

    chunks: int = 0
    stems: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    revision: int = 0


class _Body(TypedDict):
    chunks: int
    stems: dict[str, int]
    words: dict[str, int]


_FRESH: Fresh[Lexicon] = Fresh()


def current() -> Lexicon:
    """The tenant's lexicon, at most seconds behind another process and never behind this one."""
    key = _key()

    def load(known: Lexicon | None) -> Lexicon:
        with database.reading() as session:
            return _read(session, key[1], known or Lexicon())

    return _FRESH.get(key, load)


def begin() -> bool:
    """Open an ingest run, before its first write to the index.

    :returns: whether an earlier run was cut off, so that this one must end with `rebuild` instead of `finish`.
    """
    with database.writing() as session:
        state = _state(session)
        cut_off, state.dirty = state.dirty, True
    return cut_off


def finish() -> None:
    """Close an ingest run whose every change was applied."""
    with database.writing() as session:
        state = _state(session)
        state.dirty = False
        _fold(session, state, beyond=_FOLD_AFTER_RUN)
    _FRESH.expire(_key())


def apply(added: Iterable[ChunkTerms], removed: Iterable[ChunkTerms] = ()) -> None:
    """Count chunks that came and went. One transaction, whose cost depends on these chunks alone.

    Terms that no chunk holds any more disappear.
    """
    change = _count(added)
    gone = _count(removed)
    change["chunks"] -= gone["chunks"]
    for kind in ("stems", "words"):
        for term, times in gone[kind].items():
            change[kind][term] = change[kind].get(term, 0) - times
    with database.writing() as session:
        state = _state(session)
        _append(session, state, change, whole=False)
        _fold(session, state, beyond=_FOLD_WITHIN_RUN)
    _FRESH.expire(_key())


def rebuild(terms: Iterable[ChunkTerms]) -> None:
    """Count all chunks anew and close the run. Readers see the old counts until it is done."""
    fresh = _count(terms)
    with database.writing() as session:
        state = _state(session)
        _replace(session, state, Lexicon(fresh["chunks"], fresh["stems"], fresh["words"]))
        state.dirty = False
    _FRESH.expire(_key())


def _key() -> Key:
    return get_settings().database, context.current().tenant_id


def _state(session: Session) -> LexiconStateRow:
    """The tenant's state, locked: on PostgreSQL the tenant's own row keeps a second writer waiting."""
    tenant_id = context.current().tenant_id
    session.execute(select(TenantRow.tenant_id).where(TenantRow.tenant_id == tenant_id).with_for_update())
    state = session.get(LexiconStateRow, tenant_id, populate_existing=True)
    if state is None:
        state = LexiconStateRow(tenant_id=tenant_id, revision=0, dirty=False)
        session.add(state)
    return state


def _append(session: Session, state: LexiconStateRow, body: _Body, *, whole: bool) -> None:
    state.revision += 1
    packed = zlib.compress(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(), level=1)
    session.add(LexiconPartRow(tenant_id=state.tenant_id, revision=state.revision, whole=whole, body=packed))


def _replace(session: Session, state: LexiconStateRow, lexicon: Lexicon) -> None:
    session.execute(delete(LexiconPartRow).where(LexiconPartRow.tenant_id == state.tenant_id))
    body = _Body(chunks=lexicon.chunks, stems=dict(lexicon.stems), words=dict(lexicon.words))
    _append(session, state, body, whole=True)


def _fold(session: Session, state: LexiconStateRow, *, beyond: int) -> None:
    differences = LexiconPartRow.tenant_id == state.tenant_id, LexiconPartRow.whole.is_(False)
    session.flush()
    if (session.scalar(select(func.count()).where(*differences)) or 0) > beyond:
        _replace(session, state, _read(session, state.tenant_id, Lexicon()))


def _read(session: Session, tenant_id: str, known: Lexicon) -> Lexicon:
    """`known` and everything after it."""
    parts = select(LexiconPartRow).where(LexiconPartRow.tenant_id == tenant_id)
    newer = session.scalars(
        parts.where(LexiconPartRow.revision > known.revision).order_by(LexiconPartRow.revision)
    ).all()
    if not newer:
        return known
    chunks, stems, words = known.chunks, dict(known.stems), dict(known.words)
    for part in newer:
        body: _Body = json.loads(zlib.decompress(part.body))
        if part.whole:
            chunks, stems, words = 0, {}, {}
        chunks += body["chunks"]
        _add(stems, body["stems"])
        _add(words, body["words"])
    return Lexicon(chunks, MappingProxyType(stems), MappingProxyType(words), newer[-1].revision)


def _add(counts: dict[str, int], change: Mapping[str, int]) -> None:
    for term, times in change.items():
        total = counts.get(term, 0) + times
        if total > 0:
            counts[term] = total
        else:
            counts.pop(term, None)


def _count(chunks: Iterable[ChunkTerms]) -> _Body:
    stems: Counter[str] = Counter()
    words: Counter[str] = Counter()
    number = 0
    for chunk in chunks:
        number += 1
        stems.update(chunk.stems)
        words.update(chunk.words)
    return _Body(chunks=number, stems=stems, words=words)

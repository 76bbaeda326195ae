"""Document frequencies of stems and words in a tenant's chunks, for term weights and spelling.

Stored as differences: an ingest batch adds one small row, so a vocabulary of 100,000 words is not rewritten for 64
chunks, and a reader that has revision 7 reads only the later ones. Many differences are folded into one. Each
generation of the tenant's index has its own counts; revision numbers are shared by all of them.

Counts follow the index but share no transaction with it. So an ingest run starts with `begin` and ends with `finish`;
if `begin` reports that the previous run never finished, the counts may be wrong and the run must `rebuild` before
`finish`.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, TypedDict, get_args
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, delete, select

from tenants.accounts import registry
from tenants.core import context
from tenants.knowledge import trial_document
from tenants.knowledge.tables import LexiconPartRow
from tenants.knowledge.trial_document import TrialDocument
from tenants.storage import database
from tenants.storage.cache import TenantCache
from tenants.storage.tables import LexiconStateRow
from tenants.storage.tenant_session import TenantSession

_FOLD_AFTER_RUN = 64
_FOLD_WITHIN_RUN = 512
"""Differences left alone. Folding 100,000 words takes a second, a difference of 64 chunks 20 ms."""


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """Terms that one chunk, with title and headings, adds to the counts: each term once, however often it occurs.

    `codes` are the shapes of codes that the chunk explains, see `components/language/identifiers.py`.
    """

    stems: frozenset[str]
    words: frozenset[str]
    codes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Document frequencies over the tenant's `chunks`. An equal `revision` of one tenant means equal counts.

    `codes` counts the chunks that explain codes of each shape.
    """

    chunks: int = 0
    stems: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    revision: int = 0
    codes: Mapping[str, int] = field(default_factory=dict)


_Kind: TypeAlias = Literal["stems", "words", "codes"]
_KINDS: tuple[_Kind, ...] = get_args(_Kind)
_Counts: TypeAlias = dict[_Kind, dict[str, int]]


class _Body(TypedDict):
    chunks: int
    stems: dict[str, int]
    words: dict[str, int]
    codes: dict[str, int]


_CACHE_BYTES = 256_000_000
_TERM_BYTES = 115
"""Memory of a term: 8 MB for 70,000 words."""


def _bytes_of(lexicon: Lexicon) -> int:
    return _TERM_BYTES * (len(lexicon.stems) + len(lexicon.words) + len(lexicon.codes))


_CACHE: TenantCache[Lexicon] = TenantCache("lexicon", _CACHE_BYTES, _bytes_of)


def current() -> Lexicon:
    """Return the tenant's lexicon, at most seconds behind another process and never behind this one. It includes a
    document on trial.
    """
    document = trial_document.current(context.current().tenant_id)
    return stored() if document is None else _with_trial(stored(), document)


def stored() -> Lexicon:
    """Return the stored lexicon."""
    record = registry.current()

    def load(cached: Lexicon | None) -> Lexicon:
        with database.reading() as session:
            return _read(session, record.placement.generation, cached or Lexicon())

    return _CACHE.get(record.key, load, record.lexicon)


_ON_TRIAL: WeakKeyDictionary[TrialDocument, tuple[int, Lexicon]] = WeakKeyDictionary()


def _with_trial(counted: Lexicon, document: TrialDocument) -> Lexicon:
    """Return the counts with a document on trial replacing its current version."""
    revision, known = _ON_TRIAL.get(document, (None, counted))
    if revision == counted.revision:
        return known
    lexicon = _counted_on_trial(counted, document)
    _ON_TRIAL[document] = counted.revision, lexicon
    return lexicon


def _counted_on_trial(counted: Lexicon, document: TrialDocument) -> Lexicon:
    added, replaced = _count(document.chunks.terms), _count(document.replaced.terms)
    counts = _counts_of(counted)
    for kind in _KINDS:
        _add(counts[kind], added[kind])
        _add(counts[kind], {term: -times for term, times in replaced[kind].items()})
    chunks = counted.chunks + added["chunks"] - replaced["chunks"]
    return _lexicon(chunks, counts, counted.revision)


def _counts_of(lexicon: Lexicon) -> _Counts:
    return {"stems": dict(lexicon.stems), "words": dict(lexicon.words), "codes": dict(lexicon.codes)}


def _lexicon(chunks: int, counts: _Counts, revision: int) -> Lexicon:
    return Lexicon(chunks, revision=revision, **{kind: MappingProxyType(counts[kind]) for kind in _KINDS})


def begin() -> bool:
    """Open an ingest run, before its first write to the index.

    :returns: whether an earlier run was cut off, so that this one must `rebuild` before it ends with `finish`.
    """
    with database.writing() as session:
        state = _state(session)
        cut_off, state.dirty = state.dirty, True
    return cut_off


def finish() -> None:
    """End an ingest run after all of its changes were applied."""
    with database.writing() as session:
        _state(session).dirty = False
    _fold(beyond=_FOLD_AFTER_RUN)


def apply(added: Iterable[ChunkTerms], removed: Iterable[ChunkTerms] = ()) -> None:
    """Update the counts for added and removed chunks in one transaction, whose cost depends on these chunks only.

    Terms without chunks are deleted.
    """
    change = _count(added)
    lost = _count(removed)
    change["chunks"] -= lost["chunks"]
    for kind in _KINDS:
        for term, times in lost[kind].items():
            change[kind][term] = change[kind].get(term, 0) - times
    generation = _generation()
    with database.writing() as session:
        _append(session, _state(session), generation, change)
    _fold(beyond=_FOLD_WITHIN_RUN)
    registry.expire()


def rebuild(terms: Iterable[ChunkTerms], generation: int | None = None) -> None:
    """Count all chunks anew. Readers see the old counts until it is done, and still do if `terms` raises.

    The run stays open: an operator's check may call this during a run of another process.

    :param generation: the generation of the chunks; the current one if None.
    """
    counts, generation_in_work = _packed(_count(terms)), generation or _generation()
    with database.writing() as session:
        state = _state(session)
        forget(session, generation_in_work)
        state.revision += 1
        session.add(_part(state.revision, generation_in_work, counts, whole=True))
    registry.expire()


def differs(terms: Iterable[ChunkTerms]) -> bool:
    """Return whether the counts are not those of these chunks, which are all of the tenant's."""
    counted, known = _count(terms), current()
    return counted["chunks"] != known.chunks or any(counted[kind] != dict(getattr(known, kind)) for kind in _KINDS)


def forget(session: TenantSession, generation: int) -> None:
    """Delete the counts of a removed generation."""
    session.execute(delete(LexiconPartRow).where(_parts(generation)))


def _generation() -> int:
    return registry.current().placement.generation


def _parts(generation: int) -> ColumnElement[bool]:
    return LexiconPartRow.generation == generation


def _state(session: TenantSession) -> LexiconStateRow:
    """Return the tenant's state, locked."""
    return session.locked(LexiconStateRow, revision=0, dirty=False)


def _append(session: TenantSession, state: LexiconStateRow, generation: int, body: _Body) -> None:
    state.revision += 1
    session.add(_part(state.revision, generation, _packed(body), whole=False))


def _fold(*, beyond: int) -> None:
    """Fold the parts into one once there are many differences.

    A large vocabulary takes seconds, so it is folded without a lock, and replaces its parts unless they have changed
    meanwhile. Later differences are kept and apply after it.
    """
    generation = _generation()
    of_generation = _parts(generation)
    with database.reading() as session:
        if session.count(LexiconPartRow, of_generation, LexiconPartRow.whole.is_(False)) <= beyond:
            return
        revisions = session.scalars(select(LexiconPartRow.revision).where(of_generation)).all()
        folded = _read(session, generation, Lexicon(), up_to=max(revisions))
    body = _Body(chunks=folded.chunks, stems=dict(folded.stems), words=dict(folded.words), codes=dict(folded.codes))
    folded_part = _part(folded.revision, generation, _packed(body), whole=True)
    with database.writing() as session:
        _state(session)
        made_from = (of_generation, LexiconPartRow.revision <= folded.revision)
        if session.count(LexiconPartRow, *made_from) == len(revisions):
            session.execute(delete(LexiconPartRow).where(*made_from))
            session.add(folded_part)


def _part(revision: int, generation: int, body: bytes, *, whole: bool) -> LexiconPartRow:
    return LexiconPartRow(revision=revision, generation=generation, whole=whole, body=body)


def _packed(body: _Body) -> bytes:
    return zlib.compress(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(), level=1)


def _read(session: TenantSession, generation: int, cached: Lexicon, *, up_to: int | None = None) -> Lexicon:
    """Return the cached counts updated with all later parts, or with those up to a revision."""
    parts = select(LexiconPartRow).where(_parts(generation))
    if up_to is not None:
        parts = parts.where(LexiconPartRow.revision <= up_to)
    newer = session.scalars(
        parts.where(LexiconPartRow.revision > cached.revision).order_by(LexiconPartRow.revision)
    ).all()
    if not newer:
        return cached
    chunks, counts = cached.chunks, _counts_of(cached)
    for part in newer:
        body: _Body = json.loads(zlib.decompress(part.body))
        if part.whole:
            chunks, counts = 0, _counts_of(Lexicon())
        chunks += body["chunks"]
        for kind in _KINDS:
            # Counted before codes were; `reconcile` counts them.
            _add(counts[kind], body.get(kind, {}))
    return _lexicon(chunks, counts, newer[-1].revision)


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
    codes: Counter[str] = Counter()
    number = 0
    for chunk in chunks:
        number += 1
        stems.update(chunk.stems)
        words.update(chunk.words)
        codes.update(chunk.codes)
    return _Body(chunks=number, stems=stems, words=words, codes=codes)

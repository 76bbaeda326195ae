"""Access to a tenant's collections: engine and generation; each is opened once per process.

The tenant comes from the context and the location from the registry. A caller can only choose among the tenant's own
generations.

A collection stays open as long as a question refers to it: a generation that is replaced, or that was not used for the
longest time, leaves the table here, and is released with its last reference.

The current generation is compared with the records when it is opened. If it is missing, unreadable or incomplete, it
must not pass for a small knowledge base: reading it fails until it is repaired (`repairing`).
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event, Lock, RLock
from typing import TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from cachetools import LRUCache

from settings import Settings, get_settings
from tenants.accounts import registry
from tenants.accounts.registry import Placement, TenantRecord
from tenants.core.errors import IndexDamaged, InternalFault
from tenants.core.names import collection_name, collection_of
from tenants.core.scoped import scoped
from tenants.index.protocol import Collection, EmptyCollection, Engine
from tenants.index.qdrant_edge import EdgeCollection, EdgeFolder
from tenants.index.remote import IndexListener, RemoteFolder
from tenants.index.trial_collection import TrialCollection
from tenants.knowledge import generations, trial_document
from tenants.knowledge.generations import Current, Generation
from tenants.knowledge.trial_document import TrialDocument

IN_FLIGHT = timedelta(minutes=2)
"""Time for which a replaced generation may still be searched: the longest turn, plus the time until other processes
hear of the switch."""

_Key: TypeAlias = tuple[str, str]
MAX_OPEN = 10_000
"""Collections that stay open without a question that uses them. An embedded one holds files and memory: it counts as
20."""
_OPEN: LRUCache[_Key, Collection] = LRUCache(MAX_OPEN, lambda one: 20 if isinstance(one, EdgeCollection) else 1)
_IN_USE: WeakValueDictionary[_Key, Collection] = WeakValueDictionary()
"""Every open collection, replaced ones included: the embedded engine opens no folder twice."""
_PLACES: WeakKeyDictionary[Collection, Placement] = WeakKeyDictionary()
"""Where a collection was opened: a look at every tenant's index costs no query."""
_ENGINES: dict[str, Engine] = {}
_ON_TRIAL: WeakKeyDictionary[TrialDocument, tuple[Collection, TrialCollection]] = WeakKeyDictionary()
_LOCKS: WeakValueDictionary[_Key, AbstractContextManager[bool]] = WeakValueDictionary()
"""Held while a generation is opened, switched or removed; one lock per generation."""
_DAMAGED: dict[_Key, str] = {}
"""Damage of a tenant's current generation, until it is repaired."""
_LISTENERS: list[IndexListener] = []
"""Sharing of this process's embedded index; at most one."""
_ATTACHED: set[str] = set()
"""Places whose embedded index a running service has."""
_REPAIRING: ContextVar[bool] = ContextVar("opora_index_repairing", default=False)
"""Whether this block may open indexes that do not match the records."""
damage_noticed = Event()
"""Set when an index is found damaged, to wake the repair."""

log = logging.getLogger("opora.index")
_BLOCK_BYTES = 512

_TABLES = Lock()
"""Held for looking something up, never while a collection is opened: that waits for a disk or a server."""


def open_collection(
    *, create: bool = False, encoder: str = "", dimensions: int = 0, generation: int | None = None
) -> Collection:
    """Open the collection of the tenant in context.

    Raises `NoTenant` outside a tenant context, `NotFound` when the tenant is not registered, `Busy` with the code
    `data_in_use` when another process has the folder of the embedded engine, `IndexDamaged` outside of `repairing` when
    chunks that the records name are missing.

    :param create: make the collection when the tenant has none yet. Without it such a tenant reads as empty.
    :param encoder: how the chunks of a collection made now will be encoded.
    :param dimensions: of their dense vectors; 0 for none.
    :param generation: one of `tenants.knowledge.generations`; None for the one in use.
    """
    tenant = registry.current()
    placement = tenant.placement if generation is None else tenant.placement.at(generation)
    document = None if create or generation is not None else trial_document.current(tenant.tenant_id)
    if document is not None:
        return _on_trial(_open_stored(tenant, placement), document)
    return _open_stored(tenant, placement, create=create, encoder=encoder, dimensions=dimensions)


def _on_trial(stored: Collection, document: TrialDocument) -> Collection:
    """Cache the trial collection until the stored one is reopened; a short trial may miss writes to it."""
    known = _ON_TRIAL.get(document)
    if known is None or known[0] is not stored:
        known = _ON_TRIAL[document] = stored, TrialCollection(stored, document)
    return known[1]


def _open_stored(
    tenant: TenantRecord,
    placement: Placement,
    *,
    create: bool = False,
    encoder: str = "",
    dimensions: int = 0,
    known: Current | None = None,
) -> Collection:
    key = _key(placement)
    collection = _open(key)
    if collection is not None and not collection.broken and key not in _DAMAGED:
        return collection
    with _locked(key):
        _discard_broken(key)
        if key in _DAMAGED and not _REPAIRING.get():
            raise IndexDamaged(_DAMAGED[key])
        collection = _open(key)
        if collection is not None:
            return collection
        engine, opened = _engine(), _IN_USE.get(key)
        is_checked = placement == tenant.placement and not _REPAIRING.get()
        generation = known[0] if known else generations.find(placement.generation)
        try:
            exists = engine.exists(_located(tenant, placement, generation))
            if is_checked and not exists and generations.recorded_chunks():
                raise IndexDamaged("missing")
            if create and not exists:
                generation = _create(engine, tenant, placement, generation, encoder, dimensions)
            elif opened is None and not exists:
                return EmptyCollection()
            opened = opened or _open_existing(engine, tenant, placement, generation)
            if is_checked and exists and _lacks_chunks(opened, known):
                opened.close()
                raise IndexDamaged("incomplete")
        except IndexDamaged as found:
            if placement == tenant.placement:
                _note(key, found.damage)
            raise
        with _TABLES:
            _OPEN[key] = _IN_USE[key] = opened
        return opened


def attach() -> None:
    """Reach the embedded index through the service that has the data folder. For commands, while a service runs."""
    _ATTACHED.add(get_settings().index_place)


def share() -> None:
    """Let commands reach the embedded index of this process, which has to have the data folder to itself."""
    settings = get_settings()
    with _TABLES:
        if not settings.qdrant_url and not _LISTENERS:
            _LISTENERS.append(IndexListener(settings.data_dir, _shared, _perform))


def _shared(generation: int) -> Collection:
    """Return the chunks of a generation for a command, which may be about to repair them."""
    tenant = registry.current()
    with scoped(_REPAIRING, True):
        return _open_stored(tenant, tenant.placement.at(generation))


def _perform(operation: str, generation: int, dimensions: int) -> object:
    """Do for a command what `RemoteFolder` asks of the engine."""
    tenant = registry.current()
    placement, engine = _found(tenant, generation), _engine()
    key = _key(placement)
    with _locked(key):
        if operation == "exists":
            return engine.exists(placement)
        if operation == "create":
            engine.create(placement, tenant.tenant_id, dimensions)
        elif operation == "remove":
            _forget(key)
            engine.remove(placement)
        elif operation == "set_aside":
            _set_aside(key, engine, placement)
        else:
            raise InternalFault("index_failed")
    return None


def damage(known: Current | None = None) -> str | None:
    """Return the damage of the current index of the tenant in context: `missing`, `unreadable`, `incomplete`; None if
    it is intact. Opens the index to check.

    :param known: what the records say of it, if that was read before.
    """
    tenant = registry.current()
    placement = tenant.placement
    key = _key(placement)
    was_open = key in _OPEN
    if known and (known[0] is None or known[0].number != placement.generation):
        known = None
    try:
        collection = _open_stored(tenant, placement, known=known)
    except IndexDamaged as found:
        return found.damage
    if was_open:
        located = _PLACES.get(collection) or _found(tenant, placement.generation)
        if not _engine().exists(located) or _is_emptied(collection):
            _note(key, "missing")
    return _DAMAGED.get(key)


def is_open(tenant: TenantRecord) -> bool:
    """Return whether the tenant's current index is open in this process."""
    return _key(tenant.placement) in _OPEN


def damaged() -> int:
    """Count the indexes that this process found damaged and that are not repaired yet."""
    return len(_DAMAGED)


@contextmanager
def repairing() -> Iterator[None]:
    """Run the block as the rebuild of the index of the tenant in context, if it is damaged. An unreadable index is set
    aside first, and questions are refused until the block succeeds."""
    tenant = registry.current()
    placement = tenant.placement
    key = _key(placement)
    with _locked(key):
        _discard_broken(key)
        if _DAMAGED.get(key) in {"missing", "unreadable"}:
            _set_aside(key, _engine(), _found(tenant, placement.generation))
    with scoped(_REPAIRING, True):
        yield
    with _locked(key):
        if _DAMAGED.pop(key, None):
            log.warning("the index %s is whole again", placement.physical)


def activate(generation: int) -> None:
    """Switch the tenant in context to a complete generation: `open_collection` gives that one from now on.

    Searches under way finish on the generation before.
    """
    tenant = registry.current()
    generations.activate(generation)
    key = _key(tenant.placement)
    with _locked(key):
        _engine().activate(_found(tenant, generation))
        _forget(key)
        _DAMAGED.pop(key, None)


def remove(generation: int) -> None:
    """Delete a generation that is out of use, and its record. Raises `InternalFault` for the one in force."""
    tenant = registry.current()
    if generation == tenant.placement.generation:
        raise InternalFault("generation_in_force")
    _remove(tenant, generation)
    generations.forget(generation)


def remove_all() -> None:
    """Delete every generation of the tenant in context, which is about to be removed itself."""
    tenant = registry.current()
    for number in {tenant.placement.generation, *(generation.number for generation in generations.all())}:
        _remove(tenant, number)


def _remove(tenant: TenantRecord, number: int) -> None:
    key = _key(tenant.placement.at(number))
    with _locked(key):
        _forget(key)
        _DAMAGED.pop(key, None)
        _engine().remove(_found(tenant, number))


def bytes_on_disk() -> Mapping[str, int]:
    """Return the disk usage on this machine by collection, all generations; empty with a server."""
    settings, taken = get_settings(), Counter[str]()
    root = settings.data_dir / "index"
    if not settings.qdrant_url and root.is_dir():
        for folder in root.iterdir():
            for path in folder.rglob("*"):
                # Files may disappear while the index is written. They are sparse: count blocks, not lengths.
                with suppress(FileNotFoundError):
                    taken[collection_of(folder.name)] += path.stat().st_blocks * _BLOCK_BYTES
    return taken


def sweep() -> None:
    """Remove generations of the tenant in context that cannot be in use: those dropped some time ago, and an
    unfinished one. Call with the claim to write (`tenants.work.locks`), so that no other process is building."""
    unseen = datetime.now(UTC) - IN_FLIGHT
    for generation in generations.all():
        retired_at = generation.retired_at
        if generation.state == "building" or (
            generation.state == "dropped" and (retired_at is None or retired_at <= unseen)
        ):
            remove(generation.number)


def close_all() -> None:
    """Close every collection and connection. The next call opens anew.

    Call it when the process ends and after a long ingest: the embedded engine compacts what was written.
    """
    with _TABLES:
        closing: list[Collection | Engine | IndexListener] = [*_LISTENERS, *_OPEN.values(), *_ENGINES.values()]
        _LISTENERS.clear()
        _ATTACHED.clear()
        _OPEN.clear()
        _IN_USE.clear()
        _ENGINES.clear()
        _DAMAGED.clear()
    for collection in closing:
        collection.close()


def _key(placement: Placement) -> _Key:
    return get_settings().index_place, placement.key


@contextmanager
def _locked(key: _Key) -> Iterator[None]:
    with _TABLES:
        lock = _LOCKS.setdefault(key, RLock())
    with lock:
        yield


def _open(key: _Key) -> Collection | None:
    with _TABLES:
        return _OPEN.get(key)


def _forget(key: _Key) -> None:
    with _TABLES:
        _OPEN.pop(key, None)


def _set_aside(key: _Key, engine: Engine, placement: Placement) -> None:
    _forget(key)
    if (left := _IN_USE.pop(key, None)) is not None:
        left.close()
    engine.set_aside(placement)


def _note(key: _Key, damage: str) -> None:
    if _DAMAGED.get(key) != damage:
        log.error("the index %s is %s", key[1], damage)
    _DAMAGED[key] = damage
    damage_noticed.set()


def _discard_broken(key: _Key) -> None:
    """Close a collection after the engine has failed on its files, and mark it as unreadable."""
    collection = _open(key)
    if collection is None or not collection.broken:
        return
    _forget(key)
    _IN_USE.pop(key, None)
    with suppress(Exception):
        collection.close()
    _note(key, "unreadable")


def _lacks_chunks(collection: Collection, known: Current | None = None) -> bool:
    """Whether records name more chunks than are stored, which never happens in an intact index."""
    named = known[1] if known else generations.recorded_chunks()
    stored = collection.count()
    # Another process may be writing, so count the records again.
    return stored < named and stored < generations.recorded_chunks()


def _is_emptied(collection: Collection) -> bool:
    """Whether all recorded chunks are missing. Single missing chunks are found by `components.ingest.reconcile`."""
    return not collection.count() and _lacks_chunks(collection)


def _engine() -> Engine:
    settings = get_settings()
    location = settings.index_place
    with _locked((location, "")):
        if location not in _ENGINES:
            engine = _server(settings) if settings.qdrant_url else _embedded(settings)
            with _TABLES:
                _ENGINES[location] = engine
        return _ENGINES[location]


def _embedded(settings: Settings) -> Engine:
    if settings.index_place in _ATTACHED and not _LISTENERS:
        return RemoteFolder(settings.data_dir)
    return EdgeFolder(settings.data_dir / "index")


def _server(settings: Settings) -> Engine:
    # The client takes seconds of CPU to import, which the embedded engine should not pay for.
    from tenants.index.qdrant_server import QdrantServer

    return QdrantServer(
        settings.qdrant_url,
        settings.qdrant_api_key.get_secret_value(),
        replicas=settings.qdrant_replicas,
        written_replicas=settings.qdrant_written_replicas,
    )


def _found(tenant: TenantRecord, number: int) -> Placement:
    """Return where a generation of the tenant in context is stored."""
    return _located(tenant, tenant.placement.at(number), generations.find(number))


def _located(tenant: TenantRecord, placement: Placement, generation: Generation | None) -> Placement:
    """Return the placement with the collection that the generation shares with other tenants, if it shares one.

    Raises `InternalFault` (`collection_foreign`) if the registry names the chunks of another tenant: nothing in a
    shared collection says whose they are.
    """
    if generation is None or not generation.shared:
        return placement
    if placement.collection != collection_name(tenant.tenant_id):
        raise InternalFault("collection_foreign")
    return replace(placement, shared=generation.shared)


def _create(
    engine: Engine,
    tenant: TenantRecord,
    placement: Placement,
    generation: Generation | None,
    encoder: str,
    dimensions: int,
) -> Generation | None:
    """Make a generation. How it is encoded is written down first."""
    in_force = placement == tenant.placement
    if in_force:
        generations.record_first(encoder, dimensions)
        generation = generations.find(placement.generation)
    located = _located(tenant, placement, generation)
    engine.create(located, tenant.tenant_id, generation.dimensions if generation else 0)
    if in_force:
        engine.activate(located)
    return generation


def _open_existing(
    engine: Engine, tenant: TenantRecord, placement: Placement, generation: Generation | None
) -> Collection:
    located = _located(tenant, placement, generation)
    encoder, dimensions = (generation.encoder, generation.dimensions) if generation else ("", 0)
    opened = engine.open(located, tenant.tenant_id, encoder, dimensions)
    _PLACES[opened] = located
    return opened

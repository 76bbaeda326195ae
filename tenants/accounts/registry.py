"""Registry of the tenants of this installation and the location of their chunks."""

from asyncio import to_thread
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Self, TypeVar

from sqlalchemy import ColumnElement, ScalarSelect, case, func, select, update

from settings import Settings, get_settings
from tenants.accounts import settings_history
from tenants.accounts.settings_history import SettingChangeRow
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Clash, Forbidden, Invalid, NotFound
from tenants.core.names import check_tenant_id, collection_name, physical_name
from tenants.storage import database
from tenants.storage.cache import Key, TenantCache, own_key
from tenants.storage.mapping import record_of
from tenants.storage.tables import LexiconStateRow, TenantRow
from tenants.storage.tenant_session import TenantSession

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Placement:
    """Location of a tenant's chunks.

    `collection` is the permanent name, an alias; the chunks of one `generation` are stored under `physical`, so that a
    new generation can be built beside the old one. `since` is when the tenant was added: a removed tenant with the same
    id is a different one. `shared` is the collection of many tenants that holds the generation; empty if the generation
    has a dedicated one. Only `tenants.index` knows `shared`.
    """

    collection: str
    generation: int = 1
    since: datetime | None = None
    shared: str = ""

    @property
    def physical(self) -> str:
        """Return the name of the current generation."""
        return physical_name(self.collection, self.generation)

    @property
    def stored_in(self) -> str:
        """Return the name of the engine's collection that holds the generation."""
        return self.shared or self.physical

    @property
    def key(self) -> str:
        """Return the cache key for data of the current generation."""
        return f"{self.physical} {self.since}"

    def at(self, generation: int) -> Self:
        """Return the placement of another generation."""
        return replace(self, generation=generation)


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """A registered tenant. `policy` is stored as is; `tenants.accounts.policy` interprets it.

    `relations` is the revision of the data in `tenants.knowledge.relations`; 0 until something is stored.
    `document_changes` counts changes of documents, `settings` is the number and the time of the recorded changes of
    settings, and `lexicon` the revision of the document frequencies: what is cached of each is read again only when
    they have changed. A suspended tenant gets no answers.
    """

    tenant_id: str
    name: str
    locale: str
    placement: Placement
    created_at: datetime
    policy: Mapping[str, object]
    relations: int = 0
    document_changes: int = 0
    suspended_at: datetime | None = None
    settings: tuple[int, datetime | None] = (0, None)
    lexicon: int = 0

    @property
    def key(self) -> Key:
        """Return the cache key for what is stored of the tenant in the current database."""
        return get_settings().database, self.placement.key


_CACHE: TenantCache[TenantRecord] = TenantCache("tenants")


def _of_changes(value: ColumnElement[T]) -> ScalarSelect[T]:
    return select(value).where(SettingChangeRow.tenant_id == TenantRow.tenant_id).scalar_subquery()


_RECORDS = select(
    TenantRow, _of_changes(func.count()), _of_changes(func.max(SettingChangeRow.at)), LexiconStateRow.revision
).outerjoin(LexiconStateRow, LexiconStateRow.tenant_id == TenantRow.tenant_id)
"""The records, with the revisions of all that is cached of a tenant, by one statement."""


class Registry:
    """Adds and finds tenants. Records are kept in memory, so that a question costs no query."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or get_settings()

    def add(self, tenant_id: str, *, name: str = "", locale: str = "") -> TenantRecord:
        """Register a tenant. Raises `Invalid`: `tenant_id_invalid`, `tenant_exists`.

        :param name: the display name; the id if empty.
        :param locale: `ru` or `en`; the installation's default when empty.
        """
        check_tenant_id(tenant_id)
        row = TenantRow(
            tenant_id=tenant_id,
            name=name or tenant_id,
            locale=locale or self._settings.default_locale,
            policy={},
            collection=collection_name(tenant_id),
            generation=1,
            newest_generation=1,
            created_at=datetime.now(UTC),
        )
        try:
            with database.across_tenants(self._settings, write=True) as session:
                session.add(row)
        except Clash as clash:
            raise Invalid("tenant_exists") from clash
        return self.get(tenant_id)

    def get(self, tenant_id: str) -> TenantRecord:
        """Return the tenant. Raises `NotFound` with the code `tenant_unknown`."""

        def load(_cached: TenantRecord | None) -> TenantRecord:
            with database.across_tenants(self._settings) as session:
                row = session.execute(_RECORDS.where(TenantRow.tenant_id == tenant_id)).one_or_none()
            if row is None:
                raise NotFound("tenant_unknown")
            return _record(*row)

        return _CACHE.get((self._settings.database, tenant_id), load)

    def exists(self, tenant_id: str) -> bool:
        """Whether the tenant is registered."""
        try:
            self.get(tenant_id)
        except NotFound:
            return False
        return True

    def list(self) -> tuple[TenantRecord, ...]:
        """Return all tenants by id."""

        def load() -> Mapping[Key, TenantRecord]:
            with database.across_tenants(self._settings) as session:
                rows = session.execute(_RECORDS.order_by(TenantRow.tenant_id)).all()
            records = (_record(*row) for row in rows)
            return {(self._settings.database, record.tenant_id): record for record in records}

        return tuple(_CACHE.load_all(load).values())


def current(settings: Settings | None = None) -> TenantRecord:
    """Return the record of the tenant in context. Raises `NotFound` with the code `tenant_unknown`."""
    return Registry(settings).get(context.current().tenant_id)


def in_memory() -> TenantRecord | None:
    """Return the record of the tenant in context, unless that needs a database query."""
    return _CACHE.peek(own_key())


async def admitted() -> TenantRecord:
    """Return the record of the tenant in context, unless the tenant is suspended. Safe on the event loop: a database
    query runs in a thread.

    :raises NotFound: `tenant_unknown`.
    :raises Forbidden: `tenant_suspended`.
    """
    record = in_memory()
    if record is None:
        record = await to_thread(current)
    if record.suspended_at is not None:
        raise Forbidden("tenant_suspended")
    return record


def suspend(tenant_id: str, by: str) -> datetime:
    """Suspend a tenant; every process rejects its requests within seconds. No data is deleted. Raises `NotFound`.

    :returns: the moment, which `resume` may be limited to.
    """
    moment = datetime.now(UTC)
    _set_suspended(tenant_id, by, moment)
    return moment


def resume(tenant_id: str, by: str, *, since: datetime | None = None) -> None:
    """Resume a suspended tenant. Raises `NotFound`.

    :param since: resume it only if this was its last suspension.
    """
    _set_suspended(tenant_id, by, None, since)


@contextmanager
def changing() -> Iterator[tuple[TenantSession, TenantRow]]:
    """Open a write session with the row of the tenant in context, locked. Raises `NotFound`."""
    with database.writing() as session:
        yield session, session.existing(TenantRow, lock=True)
    expire()


@contextmanager
def changing_relations() -> Iterator[TenantSession]:
    """Open a write session; its changes of edges and rejected approaches take effect with the commit."""
    with database.writing() as session:
        yield session
        count_relation_change(session)
    expire()


def count_relation_change(session: TenantSession) -> None:
    """Count a change of the tenant's edges or rejected approaches. Call `expire` after the commit."""
    session.execute(update(TenantRow).values(relations=TenantRow.relations + 1))


def count_document_change(session: TenantSession) -> None:
    """Count a change of documents, and of relations, which it may affect. Call `expire` after the commit."""
    tied = case((TenantRow.relations > 0, TenantRow.relations + 1), else_=0)
    session.execute(update(TenantRow).values(relations=tied, document_changes=TenantRow.document_changes + 1))


def expire() -> None:
    """Expire the record of the tenant in context. Call it after the commit that changed it."""
    _CACHE.expire(own_key())


def refresh() -> None:
    """Reload the record of the tenant in context in this process; other processes are not notified."""
    _CACHE.drop(context.current().tenant_id)


def _set_suspended(tenant_id: str, by: str, moment: datetime | None, since: datetime | None = None) -> None:
    with acting_as(Tenant(tenant_id, by)), changing() as (session, row):
        if since is not None and row.suspended_at != since:
            return
        before = {"suspended": row.suspended_at is not None}
        row.suspended_at = moment
        settings_history.note(session, "tenant", "changed", "", before, {"suspended": moment is not None})


def _record(row: TenantRow, changes: int, changed_at: datetime | None, lexicon: int | None) -> TenantRecord:
    placement = Placement(row.collection, row.generation, row.created_at)
    policy = MappingProxyType(dict(row.policy))
    settings = changes, changed_at
    return record_of(TenantRecord, row, placement=placement, policy=policy, settings=settings, lexicon=lexicon or 0)

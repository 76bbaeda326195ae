"""Sessions that see the rows of one tenant only.

Threat: a query that forgets the tenant, and so reads or changes the rows of another one. No query names the tenant. The
session adds it to every ORM statement, wherever a table of tenants occurs in it, sets it on new rows, and refuses rows
of another tenant and statements that it cannot restrict. PostgreSQL checks the same once more, by row-level security
(migration 0027).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ClauseElement, ColumnElement, Connection, Engine, Table, delete, event, insert, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import ORMExecuteState, Session, SessionTransaction, with_loader_criteria
from sqlalchemy.orm.interfaces import ORMOption
from sqlalchemy.sql import func, select, visitors

from tenants.core.errors import InternalFault, Invalid, NoTenant, NotFound
from tenants.storage.tables import Base, TenantOwned, TenantRow

Row = TypeVar("Row", bound=Base)
T = TypeVar("T")

STATEMENT_SECONDS = "statement_seconds"
"""Execution option of an engine: the timeout of statements."""
_NO_KEY = {"key_share": True}
"""`FOR NO KEY UPDATE`: others may insert rows that refer to the locked one."""


class TenantSession(Session):
    """A session of one tenant, of all tenants, or of none; of none, it has no access to tables of tenants.

    :param tenant_id: None for all tenants or none.
    :param across: the session is of all tenants: nothing is restricted.
    """

    def __init__(
        self, bind: Engine | Connection, tenant_id: str | None, *, across: bool = False, expire_on_commit: bool = True
    ) -> None:
        super().__init__(bind, expire_on_commit=expire_on_commit)
        self._tenant_id = tenant_id
        self.across = across

    @property
    def tenant_id(self) -> str:
        """Return the tenant of this session. Raises `NoTenant` without one."""
        if self._tenant_id is None:
            raise NoTenant
        return self._tenant_id

    def find(self, kind: type[Row], *key: object, lock: bool = False) -> Row | None:
        """Return the tenant's row with this key.

        :param key: the primary key without the tenant.
        :param lock: hold the row until the transaction ends; others may still insert rows that refer to it.
        """
        prefix = (self.tenant_id,) if inspect(kind).primary_key[0].name == "tenant_id" else ()
        return self.get(kind, (*prefix, *key), with_for_update=_NO_KEY if lock else None)

    def existing(self, kind: type[Row], *key: object, lock: bool = False) -> Row:
        """Return the same as `find`. Raises `NotFound` with the code of the table if there is no such row."""
        row = self.find(kind, *key, lock=lock)
        if row is None:
            raise NotFound(kind.unknown)
        return row

    def locked(self, kind: type[Row], **values: object) -> Row:
        """Return a row locked until the transaction ends; create it from `values` if it does not exist.

        Not `FOR UPDATE`, which would block inserts of rows that refer to it.

        :param values: the columns except the tenant; for an existing row, only those of the primary key matter.
        """
        if "tenant_id" in inspect(kind).columns:
            values["tenant_id"] = self.tenant_id
        key = tuple(values[str(column.name)] for column in inspect(kind).primary_key)
        row = self.get(kind, key, with_for_update=_NO_KEY, populate_existing=True)
        if row is None:
            # If two transactions find no row, the second one waits here for the first one's row.
            dialect = postgresql if self.get_bind().dialect.name == "postgresql" else sqlite
            self.connection().execute(dialect.insert(kind).values(**values).on_conflict_do_nothing())
            row = self.get_one(kind, key, with_for_update=_NO_KEY, populate_existing=True)
        return row

    def remove(self, kind: type[Base], *conditions: ColumnElement[bool]) -> int:
        """Delete the rows for which the conditions hold; return their number."""
        removal = delete(kind).where(*conditions).execution_options(synchronize_session=False)
        count: int = self.execute(removal).rowcount  # type: ignore[attr-defined]
        return count

    def count(self, kind: type[Base], *conditions: ColumnElement[bool]) -> int:
        """Return the number of rows for which the conditions hold."""
        return self.scalar(select(func.count()).select_from(kind).where(*conditions)) or 0

    def check_room(self, kind: type[Base], limit: int, code: str, *conditions: ColumnElement[bool]) -> None:
        """Lock the tenant. Raise `Invalid` with this code if it has as many of these rows as it may."""
        self.lock_tenant()
        if self.count(kind, *conditions) >= limit:
            raise Invalid(code, limit=limit)

    def lock_tenant(self) -> None:
        """Let one transaction of the tenant at a time count rows and add one, until the transaction ends."""
        self.find(TenantRow, lock=True)

    def insert_rows(self, kind: type[Base], rows: Iterable[Mapping[str, object]]) -> None:
        """Insert rows of the tenant at a tenth of the cost of adding objects.

        :param rows: the columns except the tenant.
        """
        self.connection().execute(insert(kind), [{**row, "tenant_id": self.tenant_id} for row in rows])

    def merge(self, instance: T, *, load: bool = True, options: Sequence[ORMOption] | None = None) -> T:
        """Add a row of the tenant, or replace the one with the same key. See `Session.merge`."""
        self.claim(instance)
        return super().merge(instance, load=load, options=options)

    def claim(self, row: object) -> None:
        """Set the tenant of a new row. Raises `InternalFault` with the code `foreign_row` for one of another tenant."""
        if self.across or not isinstance(row, TenantOwned):
            return
        tenant_id: Any = row.tenant_id
        if tenant_id is None and not inspect(row).persistent:
            row.tenant_id = self.tenant_id
        elif tenant_id != self.tenant_id:
            raise InternalFault("foreign_row")


@lru_cache(maxsize=4_096)
def _criterion(tenant_id: str) -> Any:  # noqa: ANN401 - an option of statements, whose type is private
    """Return the option that restricts a statement to a tenant. Making it takes longer than using it."""
    return with_loader_criteria(
        TenantOwned, lambda row: row.tenant_id == tenant_id, include_aliases=True, track_closure_variables=False
    )


@event.listens_for(TenantSession, "do_orm_execute")
def _restrict(state: ORMExecuteState) -> None:
    session: TenantSession = state.session  # type: ignore[assignment]
    if session.across:
        return
    if session._tenant_id is not None and state.is_orm_statement and not state.is_insert:
        state.statement = state.statement.options(_criterion(session._tenant_id))
    elif _owned_tables(state.statement):
        session.tenant_id  # noqa: B018 - raises without one
        # Only ORM selects, updates and deletes can be restricted; `insert_rows` inserts.
        raise InternalFault("statement_unrestricted")


@event.listens_for(TenantSession, "before_attach")
def _claim_row(session: TenantSession, row: object) -> None:
    session.claim(row)


@event.listens_for(TenantSession, "before_flush")
def _claim_rows(session: TenantSession, _context: object, _instances: object) -> None:
    for row in (*session.new, *session.dirty, *session.deleted):
        session.claim(row)
        # A query as a value of a row would be run by the flush, which does not restrict it.
        for value in inspect(row).dict.values():
            if not session.across and _owned_tables(value):
                raise InternalFault("statement_unrestricted")


@event.listens_for(TenantSession, "after_begin")
def _tell_server(session: TenantSession, _transaction: SessionTransaction, connection: Connection) -> None:
    tell_server(connection, None if session.across else session._tenant_id or "")


def tell_server(connection: Connection, tenant_id: str | None, seconds: int | None = None) -> None:
    """Set the tenant of the transaction for PostgreSQL's row-level security, and its timeouts.

    All of it is local to the transaction, so that a pooler may give the server's connection to others after it.

    :param tenant_id: None for all tenants.
    :param seconds: timeout of a statement, 0 for none; the installation's if None. An idle transaction gets twice the
        time: its process may have been stopped while holding locks.
    """
    if connection.dialect.name != "postgresql":
        return
    options = connection.get_execution_options()
    if seconds is None:
        seconds = options.get(STATEMENT_SECONDS, 0)
    name, value = ("opora.across", "on") if tenant_id is None else ("opora.tenant", tenant_id)
    connection.exec_driver_sql(
        "SELECT set_config(%s, %s, true), set_config('statement_timeout', %s, true),"
        " set_config('idle_in_transaction_session_timeout', %s, true), set_config('lock_timeout', %s, true)",
        (name, value, f"{seconds}s", f"{2 * seconds}s", str(options.get("lock_milliseconds", 0))),
    )


def _owned_tables(statement: object) -> set[str]:
    """Return the tables of tenants that occur in a statement."""
    owned: set[str] = set()
    for element in visitors.iterate(statement) if isinstance(statement, ClauseElement) else ():
        table = element if isinstance(element, Table) else getattr(element, "table", None)
        if isinstance(table, Table) and "tenant_id" in table.columns:
            owned.add(table.name)
    return owned

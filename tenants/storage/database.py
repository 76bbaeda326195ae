"""Database of the records: SQLite under the data folder by default, PostgreSQL by URL. Same models and migrations.

SQLite is configured for one writer and many readers: write-ahead log, foreign keys enforced, commits synced to disk,
deleted data overwritten. Write transactions take the write lock at the start, because a transaction that starts as a
reader and then writes fails if another process has written in between.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from psycopg.errors import LockNotAvailable, ReadOnlySqlTransaction
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    IntegrityError,
    NoSuchModuleError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm.exc import StaleDataError
from sqlalchemy.pool import ConnectionPoolEntry

from settings import Settings, get_settings
from tenants.core import context
from tenants.core.errors import CallerError, Clash, InternalFault, Locked, TryAgain
from tenants.core.fair_semaphore import FairSemaphore
from tenants.storage.connections import BoundedConnection, SharingPool, patient
from tenants.storage.faults import is_clash, is_corrupt, is_corrupt_file
from tenants.storage.tenant_session import STATEMENT_SECONDS, TenantSession, tell_server

if TYPE_CHECKING:
    import psycopg

HEAD = "0034"
"""The newest migration; migrations are numbered in order. A test compares it with the migrations and the models."""

_BUSY_MILLISECONDS = 30_000
_SPARE_CONNECTIONS = 3
"""Connections for everything but running turns. With those of the queue, a process has eight by default."""
_GRACE_SECONDS = 2
"""Time allowed beyond the server's own statement timeout."""
_VERSIONS = text(
    "CREATE TABLE IF NOT EXISTS alembic_version"
    " (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
)
_ENGINES: dict[str, Engine] = {}
_WRITERS = FairSemaphore(1)
"""The process's turns at SQLite's write lock."""
_CORRUPT: set[str] = set()
"""Databases with a damaged file."""
_OPENING = Lock()

log = logging.getLogger("opora.database")


def engine(settings: Settings | None = None) -> Engine:
    """Return the process's engine for these settings; upgrade the schema when it is first opened."""
    settings = settings or get_settings()
    existing = _ENGINES.get(settings.database)
    if existing is not None:
        return existing
    with _OPENING:
        if settings.database not in _ENGINES:
            opened = _open(settings)
            try:
                _refuse_lost_records(opened, settings)
                # Replicas of the older version may use the server: its operator chooses the time of the upgrade.
                _upgrade(opened, existing=opened.dialect.name == "sqlite")
            except BaseException as error:
                opened.dispose()
                if is_corrupt(error):
                    raise CallerError("database_corrupt") from error
                raise
            _warn_unless_protected(opened)
            _ENGINES[settings.database] = opened
        return _ENGINES[settings.database]


def migrate(settings: Settings | None = None) -> tuple[str | None, str]:
    """Create or upgrade the schema. Safe to call from several processes at once.

    :returns: the revision before, None when there was no schema, and the revision now.
    :raises CallerError: `database_newer`, when a newer version of Opora has upgraded it already.
    """
    settings = settings or get_settings()
    opened = _open(settings)
    try:
        _refuse_lost_records(opened, settings)
        return _upgrade(opened, existing=True), HEAD
    finally:
        opened.dispose()


@contextmanager
def filling(revision: str, settings: Settings | None = None) -> Iterator[Connection]:
    """Create the empty tables of a revision, to be filled; upgrade them to this version when the block ends.
    All of it is one transaction.

    :raises CallerError: `restore_not_empty`, when there are tables.
    """
    opened = _open(settings or get_settings())
    try:
        with (
            _without_foreign_keys(opened) as connection,
            patient(connection.connection.driver_connection),
            connection.begin(),
        ):
            _begin_migration(connection)
            if _revision(connection) is not None or inspect(connection).has_table("tenants"):
                raise CallerError("restore_not_empty", place="OPORA_DATABASE_URL")
            _migrate(connection, revision)
            yield connection
            _migrate(connection, "head")
    finally:
        opened.dispose()


@contextmanager
def reading(settings: Settings | None = None) -> Iterator[TenantSession]:
    """Open a session of the tenant in context that sees one consistent state."""
    with _waited_for(settings), TenantSession(_present(settings), context.tenant_id()) as session:
        yield session


@contextmanager
def writing(settings: Settings | None = None, *, lock_milliseconds: int = 0) -> Iterator[TenantSession]:
    """Open a session of the tenant in context that is committed when the block ends and rolled back when it raises.

    :param lock_milliseconds: time to wait for a row of PostgreSQL, if not that of a statement. Raises `Locked` then.
    """
    with _committed(settings, context.tenant_id(), across=False, lock_milliseconds=lock_milliseconds) as session:
        yield session


@contextmanager
def across_tenants(settings: Settings | None = None, *, write: bool = False) -> Iterator[TenantSession]:
    """Open a session over the rows of all tenants. A test lists the callers and their reasons."""
    if write:
        with _committed(settings, None, across=True) as session:
            yield session
    else:
        with _waited_for(settings), TenantSession(_present(settings), None, across=True) as session:
            yield session


@contextmanager
def _committed(
    settings: Settings | None, tenant_id: str | None, *, across: bool, lock_milliseconds: int = 0
) -> Iterator[TenantSession]:
    with _waited_for(settings):
        bind = _present(settings).execution_options(sqlite_begin="IMMEDIATE", lock_milliseconds=lock_milliseconds)
        session = TenantSession(bind, tenant_id, across=across, expire_on_commit=False)
        with _turn_to_write(bind, tenant_id or ""), session, session.begin():
            yield session


def _turn_to_write(bind: Engine, tenant_id: str) -> AbstractContextManager[None]:
    """Let tenants take turns at SQLite's write lock, for which its own waiters only poll."""
    if bind.dialect.name != "sqlite":
        return nullcontext()
    return _WRITERS.permit((tenant_id, ""), _BUSY_MILLISECONDS / 1_000, _without_turn)


def _without_turn() -> TryAgain:
    log.warning("a transaction got no turn to write")
    return TryAgain()


@contextmanager
def single_statement(settings: Settings | None = None) -> Iterator[Connection]:
    """Open a connection for one statement about the installation. A transaction would cost three more."""
    with _waited_for(settings), _present(settings).connect() as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


def own_connection(settings: Settings) -> "psycopg.Connection[tuple[object, ...]]":
    """Open a PostgreSQL connection outside of the pool, for its owner only, with the same limits as all others.

    Raises `psycopg.Error`.
    """
    return _bounded([], {**connection_parameters(settings), "autocommit": True}, settings)


def connection_parameters(settings: Settings) -> dict[str, Any]:
    """Return the keywords with which psycopg connects to PostgreSQL, with the limits of all connections."""
    limited = _limited(make_url(settings.database), settings)
    return dict(limited.get_dialect()().create_connect_args(limited)[1])


def is_shared(settings: Settings | None = None) -> bool:
    """Whether several processes may be at work on the records."""
    return (settings or get_settings()).database.startswith("postgresql")


def check(settings: Settings | None = None) -> None:
    """Raise when the records cannot be read now: `TryAgain`, of a file on this machine with the code `database_missing`
    or `database_corrupt`."""
    with reading(settings) as session:
        session.execute(text("SELECT version_num FROM alembic_version"))
    if (settings or get_settings()).database in _CORRUPT:
        raise TryAgain("database_corrupt")


def verify(settings: Settings | None = None) -> None:
    """Read the whole of a database on this machine, and raise as `check` does. A server looks after its own."""
    bound = engine(settings)
    if bound.dialect.name == "sqlite":
        with reading(settings) as session:
            verdict = session.scalar(text("PRAGMA quick_check(1)"))
        if verdict != "ok":
            log.error("the records are damaged: %s", verdict)
            _CORRUPT.add((settings or get_settings()).database)
        else:
            _CORRUPT.discard((settings or get_settings()).database)
        check(settings)


def scrub(settings: Settings | None = None) -> None:
    """Remove erased data from SQLite's log. A server's log is the responsibility of its operator."""
    bound = engine(settings)
    if bound.dialect.name == "sqlite":
        with closing(bound.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def close_all() -> None:
    """Close all connections. The next call opens new ones."""
    with _OPENING:
        while _ENGINES:
            _ENGINES.popitem()[1].dispose()


def _present(settings: Settings | None) -> Engine:
    """Return the engine. SQLite would keep writing to a removed file, and create an empty one in its place."""
    bound = engine(settings)
    file = bound.url.database
    if bound.dialect.name == "sqlite" and file and not Path(file).exists():
        raise TryAgain("database_missing")
    return bound


def _refuse_lost_records(opened: Engine, settings: Settings) -> None:
    """Raise `CallerError` with the code `database_missing` if there is an index but no records for it.

    A new, empty database would look like an installation without any questions yet.
    """
    index = settings.data_dir / "index"
    if not index.is_dir() or not any(index.iterdir()):
        return
    file = opened.url.database if opened.dialect.name == "sqlite" else None
    if not file or Path(file).exists():  # connecting would make one
        with opened.connect() as connection:
            if _revision(connection) is not None:
                return
    raise CallerError("database_missing", folder=str(index))


def _warn_unless_protected(opened: Engine) -> None:
    """Warn if the server does not apply row-level security to the role of this service."""
    if opened.dialect.name == "postgresql":
        with opened.connect() as connection:
            role = connection.execute(text("SELECT * FROM pg_roles WHERE rolname = current_user")).mappings().one()
        if role["rolsuper"] or role["rolbypassrls"]:
            log.warning(
                "row-level security is off for the database role %s: it must not be SUPERUSER or BYPASSRLS",
                role["rolname"],
            )


@contextmanager
def _waited_for(settings: Settings | None) -> Iterator[None]:
    """Convert errors of a slow or damaged database to `TryAgain`, and those of simultaneous changes to `Clash`."""
    try:
        yield
    except DatabaseError as error:
        if is_corrupt(error):
            log.error("the records are damaged")
            if is_corrupt_file(error):
                _CORRUPT.add((settings or get_settings()).database)
            raise TryAgain("database_corrupt") from error
        if isinstance(error.orig, LockNotAvailable):
            raise Locked from error
        if is_clash(error):
            raise Clash from error
        # A standby is read-only, which psycopg reports as a programming error.
        if not isinstance(error, OperationalError) and not isinstance(error.orig, ReadOnlySqlTransaction):
            raise
        # The message quotes the statement and could reveal a question.
        log.error("the records cannot be reached: %s", type(error.orig or error).__name__)
        raise TryAgain from error
    except StaleDataError as gone:
        raise Clash from gone
    except PoolTimeout as late:
        log.error("the records cannot be reached: %s", type(late).__name__)
        raise TryAgain from late


def parsed_url(settings: Settings) -> URL:
    """Return the parsed URL. Raises `CallerError` with the code `database_url_invalid`."""
    try:
        url = make_url(settings.database)
        known = url.get_backend_name() in ("sqlite", "postgresql") and url.get_dialect() is not None
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError):
        known = False
    if not known:
        # The URL contains a password, so it is not shown.
        raise CallerError("database_url_invalid")
    return url


def _open(settings: Settings) -> Engine:
    url = parsed_url(settings)
    if url.get_backend_name() != "sqlite":
        return _server(url, settings)
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    opened = create_engine(url)
    event.listen(opened, "connect", _set_up_sqlite)
    event.listen(opened, "begin", _begin_sqlite)
    return opened


def _server(url: URL, settings: Settings) -> Engine:
    """Create the PostgreSQL engine, with a connection for each running turn and a few for other requests.

    Transactions are short, so a thread waits for a connection a moment. More would only wait for the server.
    """
    seconds = settings.database_statement_seconds
    limited = _limited(url, settings)
    opened = create_engine(
        limited,
        poolclass=SharingPool,
        pool_pre_ping=True,
        pool_timeout=seconds,
        pool_size=settings.workers + _SPARE_CONNECTIONS,
        max_overflow=0,
        execution_options={STATEMENT_SECONDS: seconds},
    )

    @event.listens_for(opened, "do_connect")
    def connect(_dialect: object, _record: object, args: list[str], kwargs: dict[str, Any]) -> BoundedConnection:
        return _bounded(args, kwargs, settings)

    return opened


def _bounded(args: list[str], kwargs: dict[str, Any], settings: Settings) -> BoundedConnection:
    # The next transaction may run on another server's connection, without the prepared statement.
    connection = BoundedConnection.connect(*args, **kwargs, prepare_threshold=None)
    connection.seconds = settings.database_statement_seconds + _GRACE_SECONDS
    return connection


def _limited(url: URL, settings: Settings) -> URL:
    """Set timeouts of the network, which PostgreSQL's client lacks by default. Options in the URL take precedence.

    Those of statements are set in each transaction (`tenants.storage.tenant_session.tell_server`).
    """
    limits = {
        "connect_timeout": str(settings.database_connect_seconds),
        # A server that has vanished sends no error: the network's own timers notice it.
        "tcp_user_timeout": str(1_000 * settings.database_statement_seconds),
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
    }
    return url.set(query={**limits, **url.query})


def _set_up_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # the driver's own idea of when to begin would get in the way of _begin_sqlite
    timeout = f"busy_timeout={_BUSY_MILLISECONDS}"
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", timeout):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('sqlite_begin', 'DEFERRED')}")


def _upgrade(target: Engine, *, existing: bool) -> str | None:
    """Create the schema, or upgrade an `existing` one; the revision before, None when there was no schema.

    :raises CallerError: `database_newer`; `database_older`, when an older schema may not be upgraded here.
    """
    with (
        _without_foreign_keys(target) as connection,
        patient(connection.connection.driver_connection),
        connection.begin(),
    ):
        _begin_migration(connection)
        before = _revision(connection)
        if before == HEAD:
            return before
        if before is not None and before > HEAD:
            raise CallerError("database_newer", found=before, known=HEAD)
        if before is not None and not existing:
            raise CallerError("database_older", found=before, known=HEAD)
        if before is None or connection.dialect.name == "sqlite":
            _migrate(connection, "head")
        else:
            _migrate_in_use(target.url)
        return before


def _migrate_in_use(url: URL) -> None:
    """Migrate a server that replicas use: in a transaction for each revision, so that locks are short."""
    target = create_engine(url, connect_args={"prepare_threshold": None})
    event.listen(target, "begin", lambda connection: tell_server(connection, None))
    try:
        with target.connect() as connection:
            _migrate(connection, "head", in_use=True)
    finally:
        target.dispose()


def _begin_migration(connection: Connection) -> None:
    """Wait for the migration of another replica, if there is one, and keep others waiting until the transaction ends.

    A migration takes as long as it takes, so nothing here has a timeout.
    """
    if connection.dialect.name == "postgresql":
        tell_server(connection, None, seconds=0)
        # Of two replicas that create it at once, the second one fails after the first one's migration.
        with suppress(IntegrityError, ProgrammingError), connection.begin_nested():
            connection.execute(_VERSIONS)
        # In conflict with itself, but not with the migration, which writes to the table through another connection.
        connection.execute(text("LOCK TABLE alembic_version IN SHARE UPDATE EXCLUSIVE MODE"))


def _migrate(connection: Connection, revision: str, *, in_use: bool = False) -> None:
    """Migrate to a revision, in the connection's transaction.

    :param in_use: others read and write meanwhile; the connection has no transaction.
    """
    # Alembic takes a quarter of a second to import, and is not needed on most starts.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "tenants:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes.update(connection=connection, in_use=in_use)
    command.upgrade(config, revision)
    if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise InternalFault("migration_broke_references")


@contextmanager
def _without_foreign_keys(target: Engine) -> Iterator[Connection]:
    """Open a connection on which a migration may rewrite a table that others refer to.

    SQLite cannot alter most of a table, so it is copied and dropped, which foreign keys would forbid; they can only be
    switched off outside a transaction (https://sqlite.org/lang_altertable.html#otheralter).
    """
    with target.execution_options(sqlite_begin="IMMEDIATE").connect() as connection:
        raw = connection.connection.driver_connection
        if not isinstance(raw, sqlite3.Connection):
            yield connection
            return
        raw.execute("PRAGMA foreign_keys=OFF")
        try:
            yield connection
        finally:
            raw.execute("PRAGMA foreign_keys=ON")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()

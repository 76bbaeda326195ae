"""Backup of an installation while it serves."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from sqlalchemy import Connection, create_engine, select, text

from settings import Settings
from tenants.backup import envelope, rows
from tenants.backup.envelope import MANIFEST, Manifest, Part
from tenants.chats.tables import ChatFileRow
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, TryAgain
from tenants.storage import database, files
from tenants.storage.sealed import seal
from tenants.storage.tenant_session import tell_server
from tenants.work.jobs import OPEN
from tenants.work.tables import JobRow

FILES = ("keys", "spool")
"""Folders of the data folder in the backup, beside those of the store of files."""

_BLOCK = 1 << 20
_ATTEMPTS = 50
_STAGE = "backup-"


def take(path: Path, settings: Settings) -> Manifest:
    """Write a backup of everything acknowledged so far to a new file; it may contain later writes.

    :raises CallerError: `backup_key_missing`, `backup_exists`, `backup_unwritable`.
    """
    key = settings.backup_key.get_secret_value()
    if not key:
        raise CallerError("backup_key_missing")
    # Sealed first: this creates a missing data key.
    started_at, sealed = datetime.now(UTC), seal(MANIFEST)
    counts, manifests = Counter[str](), list[Manifest]()
    with _stage(settings.data_dir) as stage:
        # Before the rows: a record leaves the spool once the database has it, so none is missed, and a record in both
        # places is stored once. Spools of processes on other data folders hold a record for a quarter of a second only.
        _copy_spool(settings.data_dir / "spool", stage / "spool")
        with _snapshot(settings, stage) as connection:

            def manifest(checksums: Mapping[str, str]) -> Part:
                manifests.append(
                    Manifest(
                        revision=database.HEAD,
                        started_at=started_at,
                        rows=dict(counts),
                        checksums=dict(checksums),
                        sealed=sealed,
                    )
                )
                return MANIFEST, [manifests[0].model_dump_json().encode()]

            envelope.write(path, key, _parts(connection, counts, stage, settings), manifest)
    return manifests[0]


def _parts(connection: Connection, counts: Counter[str], stage: Path, settings: Settings) -> Iterator[Part]:
    yield from rows.parts(connection, counts)
    for folder, home in (("keys", settings.data_dir), ("spool", stage), ("uploads", stage)):
        for file in sorted((home / folder).rglob("*")):
            if file.is_file():
                yield file.relative_to(home).as_posix(), _content(file)
    yield from _chat_files(connection)


def _chat_files(connection: Connection) -> Iterator[Part]:
    """Yield the encrypted files of chats, without those that are deleted meanwhile."""
    rows_in_store = select(ChatFileRow.tenant_id, ChatFileRow.file_id).where(ChatFileRow.secret.is_not(None))
    for tenant_id, file_id in connection.execute(rows_in_store.order_by(ChatFileRow.tenant_id, ChatFileRow.file_id)):
        with acting_as(Tenant(tenant_id, "backup")):
            stored = files.path("chat-files", file_id)
            if files.changed_at(stored) is not None:
                yield files.packed(stored), files.blocks(stored)


def _content(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


@contextmanager
def _stage(data_dir: Path) -> Iterator[Path]:
    """Create a folder beside the data, on the same disk, so that files can be hard-linked into it."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    stage = Path(mkdtemp(prefix=_STAGE, dir=data_dir))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def _snapshot(settings: Settings, stage: Path) -> Iterator[Connection]:
    """Open a consistent view of all records, with the files of open jobs copied to the stage.

    SQLite's database is copied: a long read makes its log grow, and keeps `scrub` waiting.
    """
    engine = database.engine(settings)
    is_server = engine.dialect.name == "postgresql"
    for _ in range(_ATTEMPTS):
        options = {"isolation_level": "REPEATABLE READ"} if is_server else {}
        with engine.connect().execution_options(**options) as connection, connection.begin():
            if is_server:
                connection.execute(text("SET TRANSACTION READ ONLY"))
                tell_server(connection, None, seconds=0)
            if not _copy_uploads(connection, stage):
                # A job has ended between reading its row and its files: start again with the current state.
                continue
            if is_server:
                yield connection
                return
            copy = _copied(connection, stage / "records.db")
        with _opened(copy) as connection:
            yield connection
        return
    raise TryAgain("jobs_in_motion")


def _copied(connection: Connection, path: Path) -> Path:
    source = connection.connection.driver_connection
    if not isinstance(source, sqlite3.Connection):
        raise TypeError("only SQLite's databases are copied")
    with closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return path


@contextmanager
def _opened(path: Path) -> Iterator[Connection]:
    copy = create_engine(f"sqlite:///{path}")
    try:
        with copy.connect() as connection:
            yield connection
    finally:
        copy.dispose()


def _copy_spool(spool: Path, stage: Path) -> None:
    stage.mkdir()
    for segment in sorted(spool.glob("*")) if spool.is_dir() else ():
        try:
            # Not linked: its process keeps writing to it.
            shutil.copyfile(segment, stage / segment.name)
        except FileNotFoundError:
            continue


def _copy_uploads(connection: Connection, stage: Path) -> bool:
    """Link or copy the files of the open jobs into the stage. Returns False if one is missing."""
    shutil.rmtree(stage / "uploads", ignore_errors=True)
    open_jobs = select(JobRow.tenant_id, JobRow.job_id, JobRow.files).where(
        JobRow.state.in_(OPEN), JobRow.kind == "upload"
    )
    for tenant_id, job_id, names in connection.execute(open_jobs):
        with acting_as(Tenant(tenant_id, "backup")):
            for name in names:
                stored = files.path("uploads", job_id, name)
                try:
                    files.copy(stored, stage / files.packed(stored))
                except FileNotFoundError:
                    return False
    return True

"""Fault injection for each store: real faults of the machine if possible, else errors like the store client's."""

import errno
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from unittest.mock import patch

import httpx
from qdrant_edge import EdgeShard
from redis import Redis
from sqlalchemy import Engine, create_engine, event, make_url, text

from evaluation.benchmarks.server import serving
from settings import get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.audit.spool import Spool
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.errors import InternalFault
from tenants.index.qdrant_edge import EdgeCollection
from tenants.storage import database, disk, files
from tenants.work import locks, uploads
from tests import fake_qdrant
from tests.fake_qdrant import FakeQdrant
from tests.gateway import Gateway, Mode
from tests.servers import own_database
from tests.stores import ARTICLE, QUESTION, TENANT, Fault, Outcome, Seen, Stage, Store, close_all

_GATEWAYS: dict[Store, Gateway] = {}
_DIRECT: dict[Store, str] = {}
_QDRANT = FakeQdrant()
_MODES: Mapping[Fault, Mode] = {
    "refused": "refuses",
    "hangs": "hangs",
    "slow": "slow",
    "corrupt": "garbles",
    "killed": "resets",
}
_PAGE_BYTES = 4_096
_SLOW_SECONDS = 0.05
_KILLED_QUESTIONS = 10
_KILLED_UPLOADS = 5
_PATIENCE_SECONDS = 60


@contextmanager
def reachable(store: Store, servers: Mapping[Store, str]) -> Iterator[Mapping[Store, str]]:
    """Route the store's URL through a gateway; return an empty dictionary for a store without a URL."""
    if store == "qdrant":
        with fake_qdrant.running(_QDRANT) as url, Gateway(make_url(url).port).running() as gateway:
            _GATEWAYS[store] = gateway
            yield {store: f"http://127.0.0.1:{gateway.port}"}
    elif store == "redis":
        with Gateway.to(servers[store]) as gateway:
            _GATEWAYS[store], _DIRECT[store] = gateway, servers[store]
            yield {store: f"redis://127.0.0.1:{gateway.port}/0"}
    elif store == "postgresql":
        with own_database(servers[store]) as own, Gateway.to(own.render_as_string()) as gateway:
            _GATEWAYS[store], _DIRECT[store] = gateway, own.render_as_string()
            yield {store: own.set(query={}, host="127.0.0.1", port=gateway.port).render_as_string()}
    else:
        yield {}


def provoked(store: Store, fault: Fault, stage: Stage) -> AbstractContextManager[None]:
    """Make the store fail until the block ends."""
    provocations: Mapping[Store, Callable[[Fault, Stage], AbstractContextManager[None]]] = {
        "sqlite": _sqlite,
        "postgresql": _postgresql,
        "edge": _edge,
        "qdrant": _qdrant,
        "redis": _redis,
        "spool": _spool,
        "uploads": _uploads,
    }
    return provocations[store](fault, stage)


def killed(store: Store) -> Seen:
    """Kill a service while the store is written to, and start it again."""
    with TemporaryDirectory() as folder, ExitStack() as environment:
        own = {"OPORA_DATA_DIR": folder, "OPORA_MODELS_DIR": os.devnull}
        environment.enter_context(patch.dict(os.environ, own))
        environment.callback(close_all)
        get_settings.cache_clear()
        Registry().add(TENANT, locale="ru")
        token = issue(get_settings(), TENANT, scopes=SCOPES, subject="anna", ttl_seconds=3_600)
        with serving(Path(folder)) as first, _client(first.port, token) as client:
            client.post("/ingest/run", json={"documents": [ARTICLE]}).raise_for_status()
            with _written_to(store, Path(folder), client) as (turns, jobs):
                os.kill(first.pid, signal.SIGKILL)
        with serving(Path(folder)) as second, _client(second.port, token) as client:
            lost = _lost(client, turns, jobs)
            ready = "ready" if client.get("/readyz").is_success else "not ready"
            answer, _ = _ask(client), _upload(client)
        return Seen(Outcome(answer["outcome"], "accepted", ready), tuple(lost))


def _client(port: int, token: str) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=60)


def _ask(client: httpx.Client) -> dict[str, str]:
    reply = client.post("/ask/run", json={"question": QUESTION}).raise_for_status()
    return {name: str(reply.json()[name]) for name in ("turn_id", "outcome")}


def _upload(client: httpx.Client, number: int = 0) -> str:
    file = (f"{number}.md", f"# {number}\n\nТекст.\n".encode())
    return str(client.post("/documents", files=[("files", file)]).raise_for_status().json()["job_id"])


@contextmanager
def _written_to(store: Store, folder: Path, client: httpx.Client) -> Iterator[tuple[list[str], list[str]]]:
    """Acknowledge turns and jobs while only the store holds them, or while it is written to."""
    with ExitStack() as stack:
        if store == "uploads":
            # Another owner holds the claim to ingest, so the files wait.
            stack.enter_context(acting_as(Tenant(TENANT, "elsewhere")))
            stack.enter_context(locks.ingesting(_PATIENCE_SECONDS))
        jobs = [_upload(client, number) for number in range(_KILLED_UPLOADS)]
        if store == "spool":
            # The database is locked: the records are only in the spool.
            other = stack.enter_context(closing(sqlite3.connect(folder / "opora.db", isolation_level=None)))
            other.execute("BEGIN IMMEDIATE")
        elif store in {"sqlite", "edge"}:
            stack.enter_context(_writing(store, client))
        yield [_ask(client)["turn_id"] for _ in range(_KILLED_QUESTIONS)], jobs


@contextmanager
def _writing(store: Store, client: httpx.Client) -> Iterator[None]:
    """Write again and again until the service is down."""

    def write() -> None:
        with suppress(httpx.HTTPError):
            for number in count():
                if store == "sqlite":
                    client.patch(f"/documents/{ARTICLE['doc_id']}", json={"priority": number % 3})
                else:
                    texts = [{"doc_id": f"{number}-{each}", "text": f"Текст {each}. " * 200} for each in range(20)]
                    client.post("/ingest/run", json={"documents": texts})

    writing = Thread(target=write)
    writing.start()
    yield
    writing.join(_PATIENCE_SECONDS)


def _lost(client: httpx.Client, turns: list[str], jobs: list[str]) -> list[str]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        missing = [turn for turn in turns if not client.get(f"/audit/{turn}").is_success]
        undone = [job for job in jobs if client.get(f"/jobs/{job}").json()["state"] != "done"]
        if not (missing or undone) or time.monotonic() > deadline:
            return missing + undone
        Event().wait(_SLOW_SECONDS)


@contextmanager
def _sqlite(fault: Fault, stage: Stage) -> Iterator[None]:
    file = stage.folder / "opora.db"
    if fault == "refused":
        aside = file.with_suffix(".aside")
        file.rename(aside)
        yield
        aside.rename(file)
    elif fault == "hangs":
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
        other.close()
    elif fault == "corrupt":
        database.engine().dispose()  # nothing is left in a log then
        good = file.with_suffix(".good")
        _copy(file, good)
        size = file.stat().st_size
        with file.open("r+b") as pages:
            pages.seek(16 * _PAGE_BYTES)
            pages.write(b"\x55" * (size - 16 * _PAGE_BYTES))
        yield
        _copy(good, file)
        good.unlink()
        database.verify()
    else:
        refusal = {"full": "database or disk is full", "read-only": "attempt to write a readonly database"}.get(fault)
        with _statements(database.engine(), refusal):
            yield


def _copy(source: Path, target: Path) -> None:
    """Copy with SQLite itself, because threads of the service may have the file open."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@contextmanager
def _statements(engine: Engine, refusal: str | None) -> Iterator[None]:
    """Delay the statements of an engine, or, with `refusal`, make those that write fail."""

    class FaultyCursor(sqlite3.Cursor):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
            Event().wait(_SLOW_SECONDS / 10 if refusal is None else 0)
            if refusal is not None and statement.split(" ", 1)[0] in {"INSERT", "UPDATE", "DELETE"}:
                raise sqlite3.OperationalError(refusal)
            return super().execute(statement, *values)  # type: ignore[arg-type]

    class FaultyConnection(sqlite3.Connection):
        def cursor(self, *_: object, **__: object) -> sqlite3.Cursor:  # type: ignore[override]
            return super().cursor(FaultyCursor)

    def connect(_dialect: object, _record: object, args: list[str], kwargs: dict[str, object]) -> sqlite3.Connection:
        return FaultyConnection(*args, **kwargs)  # type: ignore[arg-type]

    event.listen(engine, "do_connect", connect)
    engine.dispose()
    yield
    event.remove(engine, "do_connect", connect)
    engine.dispose()


@contextmanager
def _postgresql(fault: Fault, stage: Stage) -> Iterator[None]:
    admin = create_engine(_DIRECT["postgresql"], isolation_level="AUTOCOMMIT")
    try:
        if fault == "killed":
            with admin.connect() as connection:
                connection.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                    )
                )
            yield
        elif fault == "read-only":
            with admin.connect() as connection:
                connection.execute(text(f"ALTER DATABASE {admin.url.database} SET default_transaction_read_only = on"))
            database.engine().dispose()
            yield
            with admin.connect() as connection:
                connection.execute(text("SET default_transaction_read_only = off"))
                connection.execute(text(f"ALTER DATABASE {admin.url.database} RESET default_transaction_read_only"))
            database.engine().dispose()
        elif fault in {"full", "corrupt"}:
            with _raising(admin, "53100" if fault == "full" else "XX001"):
                yield
        else:
            with _blocked("postgresql", fault):
                yield
    finally:
        admin.dispose()


@contextmanager
def _raising(admin: Engine, code: str) -> Iterator[None]:
    """Make writes to any table fail with a server's error."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    with admin.connect() as connection:
        names = [str(name) for name in connection.scalars(text(tables))]
        raising = f"BEGIN RAISE EXCEPTION 'fault' USING ERRCODE = '{code}'; END"
        connection.execute(
            text(f"CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $body$ {raising} $body$")
        )
        for name in names:
            connection.execute(
                text(
                    f'CREATE TRIGGER fault BEFORE INSERT OR UPDATE OR DELETE ON "{name}" '
                    "FOR EACH STATEMENT EXECUTE FUNCTION fault()"
                )
            )
    yield
    with admin.connect() as connection:
        connection.execute(text("DROP FUNCTION fault() CASCADE"))


@contextmanager
def _blocked(store: Store, fault: Fault) -> Iterator[None]:
    gateway = _GATEWAYS[store]
    gateway.mode = _MODES[fault]
    if fault in {"refused", "killed"}:
        gateway.cut()
    yield
    gateway.mode = "passes"
    if fault == "corrupt":
        gateway.cut()


@contextmanager
def _redis(fault: Fault, stage: Stage) -> Iterator[None]:
    if fault not in {"full", "read-only"}:
        with _blocked("redis", fault):
            yield
        return
    with Redis.from_url(_DIRECT["redis"]) as admin:
        if fault == "full":
            admin.config_set("maxmemory", 1)
            yield
            admin.config_set("maxmemory", 0)
        else:
            admin.execute_command("REPLICAOF", "127.0.0.1", "1")
            yield
            admin.execute_command("REPLICAOF", "NO", "ONE")


@contextmanager
def _edge(fault: Fault, stage: Stage) -> Iterator[None]:
    (folder,) = (path for path in (stage.folder / "index").iterdir() if path.name.endswith("~g000001"))
    released = Event()
    usual_search, usual_flush = EdgeCollection.search, EdgeCollection._writable_shard

    def search(*arguments: object, **named: object) -> object:
        if fault == "hangs":
            released.wait(_PATIENCE_SECONDS)
        Event().wait(_SLOW_SECONDS)
        return usual_search(*arguments, **named)  # type: ignore[arg-type]

    @contextmanager
    def read_only(collection: EdgeCollection, ids: list[str]) -> Iterator[EdgeShard]:
        with usual_flush(collection, ids) as shard:
            yield shard
            raise OSError("Service runtime error: IO Error: Read-only file system (os error 30)")

    with ExitStack() as stack:
        if fault == "refused":
            index.close_all()
            shard = EdgeShard.load(str(folder / "shard"))
            stack.callback(shard.close)
        elif fault == "corrupt":
            index.close_all()
            for file in folder.rglob("segment.json"):
                file.write_bytes(b"")
            # Before it is repaired, which takes a moment.
            stack.enter_context(patch("pipelines.ingest.session.repair", _later(released)))
        elif fault == "full":
            stack.enter_context(patch.object(disk, "free", lambda _folder: -1))
        elif fault == "read-only":
            stack.enter_context(patch.object(EdgeCollection, "_writable_shard", read_only))
        else:
            with acting_as(Tenant(TENANT, "stores")):
                opened = index.open_collection()
            if isinstance(opened, EdgeCollection):
                opened.version = fault  # so that no search is remembered
            stack.enter_context(patch.object(EdgeCollection, "search", search))
        stack.callback(released.set)
        yield


def _later(released: Event) -> Callable[..., None]:
    from components.ingest.reconcile import repair

    def waiting(*arguments: object) -> None:
        if not released.is_set():
            raise InternalFault
        repair(*arguments)  # type: ignore[arg-type]

    return waiting


@contextmanager
def _qdrant(fault: Fault, stage: Stage) -> Iterator[None]:
    refusals = {"full": (500, "No space left on device"), "read-only": (403, "Write access is required")}
    if fault in refusals:
        with patch.object(_QDRANT, "refusal", refusals[fault]):
            yield
    else:
        with _blocked("qdrant", fault):
            yield


@contextmanager
def _spool(fault: Fault, stage: Stage) -> Iterator[None]:
    folder, released, usual = stage.folder / "spool", Event(), Spool._write
    numbers: Mapping[Fault, int] = {"refused": errno.EACCES, "read-only": errno.EROFS, "full": errno.ENOSPC}

    def write(spool: Spool, line: bytes) -> None:
        if fault == "hangs":
            released.wait(_PATIENCE_SECONDS)
        elif fault == "slow":
            Event().wait(_SLOW_SECONDS)
        else:
            raise OSError(numbers[fault], os.strerror(numbers[fault]))
        usual(spool, line)

    if fault == "corrupt":
        (folder / "0-0-00000001.jsonl").write_bytes(b'\n{"cut short\n\xff\xff\n')
        yield
        return
    with patch.object(Spool, "_write", write):
        yield
        released.set()


@contextmanager
def _uploads(fault: Fault, stage: Stage) -> Iterator[None]:
    folder, released, usual = stage.folder / "uploads", Event(), uploads.UploadedFile.write
    numbers: Mapping[Fault, int] = {"read-only": errno.EROFS, "full": errno.ENOSPC}

    def write(file: uploads.UploadedFile, data: bytes) -> None:
        if fault == "hangs":
            released.wait(_PATIENCE_SECONDS)
        elif fault == "slow":
            Event().wait(_SLOW_SECONDS)
        else:
            with files.storing():
                raise OSError(numbers[fault], os.strerror(numbers[fault]))
        usual(file, data)

    if fault == "refused":
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("a file", encoding="utf-8")
        yield
        folder.unlink()
    elif fault == "corrupt":
        stage.upload("\x00\x01\x02", "damaged.pdf")
        yield
    else:
        stage.release = released.set if fault == "hangs" else None
        with patch.object(uploads.UploadedFile, "write", write):
            yield
            released.set()
        stage.release = None

"""A database of an earlier version is upgraded without loss, and one of a later version is not changed."""

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.engine.interfaces import ReflectedColumn

from settings import ROOT, Settings, get_settings
from tenants import index
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit import search
from tenants.chats import consents, files, store, webhooks
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, Forbidden, Unauthenticated
from tenants.desk import feedback, operator_sessions, operators
from tenants.knowledge import documents
from tenants.storage import database
from tenants.storage import files as stored_files
from tenants.work import jobs, queue, uploads
from tenants.work.queue import TenantTask
from tests.chats import all_tickets, handed_over
from tests.records import of_every_database
from tests.servers import own_database
from tests.webhooks import wait_until

STORED = Path(__file__).with_name("version_0_1_0.tar.xz")
"""Data folder written by version 0.1.0."""
VERSIONS = ROOT / "tenants" / "migrations" / "versions"
ANNA = Tenant("acme", "anna")
ACME = text(
    "INSERT INTO tenants (tenant_id, name, locale, policy, collection, generation, newest_generation,"
    " relations, created_at) VALUES ('acme', 'Acme', 'ru', '{}', 'acme', 1, 1, 0, :now)"
)
"""Adds the tenant to a database of any version."""
VISITOR = Tenant("acme", "v:bd2604a6f94e472f3ee1866bd389d9f2")
BREAKING: Mapping[str, list[str]] = {
    "0027": [
        "operator_sessions.login is gone",
        "operator_sessions.operator_id is required",
        "operators.operator_id is required",
    ],
    "0030": [
        *(f"stream_events.{name} is gone" for name in ("data", "name", "number", "tenant_id", "turn_id")),
        *(
            f"streams.{name} is gone"
            for name in ("begun_at", "holder", "owner", "request_hash", "tenant_id", "turn_id")
        ),
    ],
    "0031": ["tenants.shard_key is gone", "tenants.shared_filter is gone"],
    "0032": [
        f"upload_pieces.{name} is gone" for name in ("created_at", "data", "job_id", "name", "number", "tenant_id")
    ],
}
"""Changes of migrations that break replicas of the previous version: they must stop for such an upgrade, as
docs/operate/deploy.md says."""


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """An installation of version 0.1.0, on SQLite."""
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    with tarfile.open(STORED) as stored:
        stored.extractall(tmp_path, filter="data")
    yield get_settings()
    index.close_all()
    database.close_all()
    get_settings.cache_clear()


def differences(settings: Settings) -> list[object]:
    with database.engine(settings).connect() as connection:
        migration = MigrationContext.configure(connection, opts={"include_name": of_every_database})
        return list(compare_metadata(migration, Base.metadata))


def test_a_database_of_the_first_version_is_upgraded_without_loss(old: Settings) -> None:
    assert database.migrate(old) == ("0019", database.HEAD)
    assert database.migrate(old) == (database.HEAD, database.HEAD)
    assert differences(old) == []
    with acting_as(ANNA):
        (ticket,) = all_tickets()
        assert (ticket.question, ticket.subject) == ("Позовите человека, мой заказ 42 не пришёл", "anna")
        assert policy.current().handoff_channel == "support@acme.example"
        assert {record.doc_id for record in documents.all()} >= {"returns.md", "delivery.md"}
        assert [verdict.thumb for verdict in feedback.latest()] == ["up"]
        assert operators.authenticate("anna", "снег идёт над рекой").role == "admin"
        assert [webhook.url for webhook in webhooks.own()] == ["https://crm.example/hook"]
        assert search.verify().links
        assert search.verify().faults == ()
    with acting_as(VISITOR):
        (chat,) = store.of_caller()
        ((file, content),) = files.of_chat(chat.chat_id)
        assert (file.name, file.message_id, content) == ("чек.pdf", None, b"%PDF-")
        consents.withdraw(chat.site)
        with pytest.raises(Forbidden):
            consents.check(chat.site)


def test_an_embedded_database_is_upgraded_when_it_is_opened(old: Settings) -> None:
    with acting_as(ANNA):
        assert len(all_tickets()) == 1


def test_a_later_database_serves_running_services_only(records: Settings) -> None:
    Registry(records).add("acme")
    with database.writing(records) as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        session.execute(text("ALTER TABLE tickets ADD COLUMN of_a_later_version VARCHAR(16)"))
    # A replica of this version keeps running until it is replaced.
    database.check(records)
    with acting_as(ANNA):
        ticket = handed_over(turn_id="t", reason="user_request", question="Позовите человека", session_id="")
        assert all_tickets() == (ticket,)
    database.close_all()
    for opening in (database.engine, database.migrate):
        with pytest.raises(CallerError, match="database_newer") as refused:
            opening(records)
        assert refused.value.params == {"found": "9999", "known": database.HEAD}


def test_a_migration_leaves_what_replicas_of_the_version_before_need(tmp_path: Path) -> None:
    """While replicas are replaced one by one, the older ones read and write the newer schema."""
    target = create_engine(f"sqlite:///{tmp_path / 'opora.db'}")
    broken: dict[str, list[str]] = {}
    before: dict[str, dict[str, ReflectedColumn]] = {}
    for revision in sorted(path.name[:4] for path in VERSIONS.glob("0*.py")):
        with database._without_foreign_keys(target) as connection, connection.begin():
            database._migrate(connection, revision)
            now = {
                table: {column["name"]: column for column in inspect(connection).get_columns(table)}
                for table in inspect(connection).get_table_names()
            }
        if faults := sorted(_breaks(before, now)):
            broken[revision] = faults
        before = now
    target.dispose()
    assert broken == BREAKING


def _breaks(
    before: Mapping[str, Mapping[str, ReflectedColumn]], now: Mapping[str, Mapping[str, ReflectedColumn]]
) -> Iterator[str]:
    for table, columns in before.items():
        kept = now.get(table, {})
        yield from (f"{table}.{name} is gone" for name in columns.keys() - kept.keys())
        for name, column in kept.items():
            required = not column["nullable"] and column.get("default") is None
            if required and (name not in columns or columns[name]["nullable"] or columns[name].get("default")):
                yield f"{table}.{name} is required"


@pytest.fixture
def empty_server(installation: Settings, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The installation, its records in a PostgreSQL database without tables."""
    with own_database(postgres_url) as url:
        monkeypatch.setenv("OPORA_DATABASE_URL", url.render_as_string(hide_password=False))
        get_settings.cache_clear()
        yield get_settings()
        database.close_all()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(
    request: pytest.FixtureRequest, installation: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """The installation, its records in a database without tables."""
    if request.param == "postgresql":
        yield request.getfixturevalue("empty_server")
        return
    monkeypatch.setenv("OPORA_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.db'}")
    get_settings.cache_clear()
    yield get_settings()
    database.close_all()


@contextmanager
def schema_of(settings: Settings, revision: str) -> Iterator[Connection]:
    """Create the database of an earlier version; open while the block runs."""
    target = database._open(settings)
    with database._without_foreign_keys(target) as connection, connection.begin():
        database._begin_migration(connection)
        database._migrate(connection, revision)
        yield connection
    target.dispose()


def test_operators_and_their_sessions_survive_the_upgrade(empty: Settings) -> None:
    password, now = "снег идёт над рекой", datetime.now(UTC).replace(tzinfo=None).isoformat(" ")
    hashed = operators._hash(password)
    with schema_of(empty, "0019") as connection:
        connection.execute(ACME, {"now": now})
        for login, tenant_id, role in (("anna", "acme", "admin"), ("root", None, "installation")):
            connection.execute(
                text("INSERT INTO operators VALUES (:login, :tenant_id, :role, 'Анна', :hashed, :now)"),
                {"login": login, "tenant_id": tenant_id, "role": role, "hashed": hashed, "now": now},
            )
            connection.execute(
                text("INSERT INTO operator_sessions VALUES (:digest, :login, '::1', 'Firefox', :now, :now)"),
                {"digest": operator_sessions.digest_of(f"secret of {login}"), "login": login, "now": now},
            )
    assert database.migrate(empty) == ("0019", database.HEAD)
    assert differences(empty) == []
    for login, tenant_id in (("anna", "acme"), ("root", None)):
        operator = operators.authenticate(login, password)
        assert (operator.login, operator.tenant_id, operator.name) == (login, tenant_id, "Анна")
        assert operator_sessions.verify(f"secret of {login}").operator == operator
    with acting_as(ANNA):
        assert [one.login for one in operators.all()] == ["anna"]
        operators.remove("anna", even_last=True)
    with pytest.raises(Unauthenticated, match="session_ended"):
        operator_sessions.verify("secret of anna")


def test_uploads_that_wait_in_the_database_move_to_the_store(empty: Settings) -> None:
    with schema_of(empty, "0031") as connection:
        connection.execute(ACME, {"now": "2026-01-01 00:00:00"})
        for number, (name, data) in enumerate([("а.md", b"1"), ("п/б.md", b"2"), ("а.md", b"3"), ("п/б.md", b"4")]):
            connection.execute(
                text("INSERT INTO upload_pieces VALUES ('acme', 'job-1', :number, :name, :data, :now)"),
                {"number": number, "name": name, "data": data, "now": "2026-01-01 00:00:00"},
            )
    with acting_as(ANNA):
        stored_files.write(stored_files.path("uploads", "job-1", "а.md"), b"of an interrupted migration")
    assert database.migrate(empty) == ("0031", database.HEAD)
    with acting_as(ANNA):
        folder = uploads.fetched("job-1")
    assert {path.name: path.read_bytes() for path in folder.rglob("*.md")} == {"а.md": b"13", "б.md": b"24"}


def test_jobs_that_wait_during_an_upgrade_are_done(empty: Settings) -> None:
    """The earlier version had no queue of tasks: workers find its jobs by their rows."""
    with schema_of(empty, "0027") as connection:
        connection.execute(ACME, {"now": "2026-01-01 00:00:00"})
        for job_id, state, attempts in (("job-1", "running", 1), ("job-2", "queued", 0)):
            connection.execute(
                text(
                    "INSERT INTO jobs (tenant_id, job_id, subject, kind, state, files, gone, size, progress, revision,"
                    " attempts, farthest, faults, cancelling, created_at, started_at) VALUES ('acme', :job, 'anna',"
                    " 'upload', :state, '[\"a.md\"]', '[]', 1, '{}', 1, :attempts, 0, 0, FALSE, :now, :now)"
                ),
                {"job": job_id, "state": state, "attempts": attempts, "now": "2026-01-01 00:00:00"},
            )
            connection.execute(
                text("INSERT INTO upload_pieces VALUES ('acme', :job, 0, 'a.md', :data, :now)"),
                {"job": job_id, "data": job_id.encode(), "now": "2026-01-01 00:00:00"},
            )
    assert database.migrate(empty) == ("0027", database.HEAD)
    imported: list[tuple[str, bytes]] = []

    class Import:
        def step(self) -> float | None:
            with acting_as(ANNA):
                while (job := jobs.begin()) is not None:
                    (path,) = uploads.fetched(job.job_id).iterdir()
                    imported.append((job.job_id, path.read_bytes()))
                    jobs.end(job.job_id, "done")
            return 0.0

        def pause(self) -> None:
            """Do nothing: no step leaves work."""

    worker = queue.create(empty, [TenantTask("ingest", jobs.tenants_waiting, lambda _: Import())], [])
    worker.warm_up()
    try:
        wait_until(lambda: len(imported) == 2)
    finally:
        worker.close()
    assert imported == [("job-1", b"job-1"), ("job-2", b"job-2")]


def test_a_server_is_upgraded_by_whoever_runs_it(empty_server: Settings) -> None:
    """Replicas of the older version may still use the database, so a starting service does not upgrade it."""
    target = create_engine(empty_server.database)
    with target.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "tenants:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes.update(connection=connection, in_use=False)
        command.upgrade(config, "0019")
        connection.execute(
            text("INSERT INTO tenants VALUES ('acme', 'Acme', 'ru', '{}', 'acme', 1, 1, NULL, NULL, 0, now(), NULL)")
        )
    target.dispose()
    with pytest.raises(CallerError, match="database_older"):
        database.engine(empty_server)
    assert database.migrate(empty_server) == ("0019", database.HEAD)
    assert differences(empty_server) == []
    assert Registry(empty_server).get("acme").name == "Acme"


def test_a_table_that_others_refer_to_can_be_rewritten(old: Settings) -> None:
    target = database.engine(old)
    with database._without_foreign_keys(target) as connection, connection.begin():
        operations = Operations(MigrationContext.configure(connection, opts={"render_as_batch": True}))
        with operations.batch_alter_table("tenants", recreate="always") as tenants:
            tenants.alter_column("name", nullable=True)
    with target.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall() == []
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM tickets").scalar() == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM tenants").scalar() == 1


def test_stored_evaluations_get_the_standard_names_of_figures() -> None:
    renamed = import_module("tenants.migrations.versions.0027_release_0_2").renamed
    summary = {
        "sets": [{"figures": {"right_of_claimed:howto": {"value": 0.5}}, "claims": [{"claimed_of_unanswerable": 0}]}],
        "targets": [{"figure": "false_answer", "met": True}],
    }
    assert renamed(summary) == {
        "sets": [{"figures": {"answer_precision:howto": {"value": 0.5}}, "claims": [{"false_answer_rate": 0}]}],
        "targets": [{"figure": "false_answer_rate", "met": True}],
    }

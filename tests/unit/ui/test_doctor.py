"""`opora doctor`: on an empty folder, on an installation at work, and on everything that may be wrong with one."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from shutil import copytree
from threading import Event
from time import monotonic

import pytest
from sqlalchemy import URL
from typer.testing import CliRunner

from cli import app
from components.ingest.document import SourceDocument
from components.language.texts import LOCALES
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.running import simulator_thread
from pipelines.ingest.usecase import Ingest
from settings import ROOT, Settings, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import database, disk
from tenants.work import locks
from tests import servers
from tests.pages import PAGES
from ui.doctor import CHECKS, examine, machine, models, proxy, stores
from ui.doctor.finding import Finding

SECRET = "hush-hush-hush"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation whose data folder does not exist yet."""
    folder = tmp_path / "data"
    monkeypatch.setenv("OPORA_DATA_DIR", str(folder))
    get_settings.cache_clear()
    yield folder
    get_settings.cache_clear()


def codes(findings: Iterator[Finding]) -> list[tuple[str, str]]:
    return [(one.status, one.code) for one in findings]


def changed(settings: Settings, **values: object) -> Settings:
    return Settings.model_validate({**settings.model_dump(exclude_unset=True), **values})


def test_an_empty_folder_stays_empty_and_has_no_problem(empty: Path) -> None:
    findings = examine(get_settings())
    assert {one.check for one in findings} == set(CHECKS)
    assert {one.status for one in findings} <= {"ok", "warning"}
    assert {"folder_absent", "sqlite_absent", "encoder_missing", "models_none"} <= {one.code for one in findings}
    assert not empty.exists()


def test_the_command_prints_no_secret_and_exits_with_1(
    empty: Path, monkeypatch: pytest.MonkeyPatch, nowhere: str
) -> None:
    url = f"http://user:{SECRET}@{nowhere}"
    for name, value in {
        "DATABASE_URL": f"postgresql+psycopg://u:{SECRET}@{nowhere}/records",
        "QDRANT_URL": url,
        "QDRANT_API_KEY": SECRET,
        "REDIS_URL": f"redis://:{SECRET}@{nowhere}",
        "OLLAMA_URL": url,
        "DATA_KEYS": SECRET,
        "TOKEN_KEYS": SECRET,
        "PROFILE": "ollama",
    }.items():
        monkeypatch.setenv(f"OPORA_{name}", value)
    get_settings.cache_clear()
    shown = CliRunner().invoke(app, ["doctor", "--json"])
    assert shown.exit_code == 1
    assert SECRET not in shown.output
    faults = [(one["check"], one["code"], one["command"]) for one in json.loads(shown.stdout) if one["status"] != "ok"]
    assert faults == [
        ("secrets", "data_keys_short", 'export OPORA_DATA_KEYS="$(openssl rand -base64 32)"'),
        ("secrets", "token_keys_short", 'export OPORA_TOKEN_KEYS="$(openssl rand -base64 32)"'),
        ("database", "postgres_unreachable", "docker compose up --detach postgres"),
        ("index", "qdrant_unreachable", stores._DOCKER),
        ("redis", "redis_unreachable", "docker compose up --detach redis"),
        ("encoder", "unreachable", "ollama serve"),
        ("models", "unreachable", "ollama serve"),
    ]
    plain = CliRunner().invoke(app, ["doctor"])
    assert plain.exit_code == 1
    assert SECRET not in plain.output
    assert "→ ollama serve" in plain.output


def test_a_check_that_hangs_or_breaks_is_reported() -> None:
    def hanging(settings: Settings) -> list[Finding]:
        Event().wait(60)
        return []

    def broken(settings: Settings) -> list[Finding]:
        raise RuntimeError(SECRET)

    started_at = monotonic()
    findings = examine(Settings(), {"redis": hanging, "disk": broken, "clock": lambda _: []}, seconds=0.2)
    assert monotonic() - started_at < 10
    assert [(one.check, one.code) for one in findings] == [("redis", "hangs"), ("disk", "failed")]
    assert SECRET not in findings[1].words("en")


@pytest.mark.parametrize("locale", LOCALES)
def test_an_unknown_error_still_has_words(locale: str) -> None:
    assert "no_such_code" in Finding("disk", "problem", "cli.error.no_such_code").words(locale)


# The machine


def test_folders_and_keys_that_others_can_read_are_named(installation: Settings) -> None:
    folder = installation.data_dir
    (folder / "keys").mkdir(exist_ok=True)
    (folder / "keys" / "data.key").write_text("x" * 40)
    (folder / "keys" / "data.key").chmod(0o600)
    folder.chmod(0o700)
    assert codes(machine.check_folder(installation)) == [("ok", "folder")]
    assert codes(machine.check_secrets(installation)) == [("ok", "secrets")]
    folder.chmod(0o755)
    (folder / "keys" / "data.key").chmod(0o644)
    assert codes(machine.check_folder(installation)) == [("warning", "folder_open")]
    assert codes(machine.check_secrets(installation)) == [("problem", "keys_open")]


def test_weak_and_unreadable_secrets_are_named(installation: Settings, tmp_path: Path) -> None:
    assert codes(machine.check_secrets(changed(installation, data_keys=SECRET))) == [("problem", "data_keys_short")]
    jwks = tmp_path / "jwks.json"
    jwks.write_text("[]")
    assert codes(machine.check_secrets(changed(installation, token_jwks_file=jwks))) == [("problem", "jwks_unreadable")]


def test_a_full_disk_is_a_problem(installation: Settings) -> None:
    free = disk.free(installation.data_dir)
    by_reserve = {1: "disk", free * 2 // 3: "disk_low", 10**13: "disk_full"}
    for reserve, code in by_reserve.items():
        assert codes(machine.check_disk(changed(installation, disk_reserve_bytes=reserve)))[0][1] == code


def test_a_clock_behind_the_records_is_off(installation: Settings) -> None:
    assert codes(machine.check_clock(installation))[0][0] == "ok"
    later = datetime.now(UTC).timestamp() + 3_600
    os.utime(installation.data_dir / "opora.db", (later, later))
    (finding,) = machine.check_clock(installation)
    assert (finding.code, finding.params["name"]) == ("clock_off", "opora.db")
    assert 3_500 < float(finding.params["seconds"]) <= 3_600


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["pydantic>=2", "redis>=99", "no-such-package", "pywin32; sys_platform == 'win32'"]
    monkeypatch.setattr(metadata, "requires", lambda _: required)
    (finding,) = machine.check_python(Settings())
    assert (finding.code, finding.params["packages"]) == ("packages_unfit", "no-such-package, redis>=99")


# Stores


@pytest.mark.parametrize(
    ("revision", "expected"),
    [(database.HEAD, ("ok", "sqlite")), ("0019", ("ok", "sqlite_older")), ("9999", ("problem", "database_newer"))],
    ids=["current", "older", "newer"],
)
def test_the_schema_is_compared_without_an_upgrade(
    installation: Settings, revision: str, expected: tuple[str, str]
) -> None:
    with database.writing(installation) as session:
        session.connection().exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    database.close_all()
    assert codes(stores.check_database(installation)) == [expected]


def test_damaged_and_lost_records_are_problems(installation: Settings) -> None:
    records = installation.data_dir / "opora.db"
    database.close_all()
    records.write_bytes(b"no database" * 1_000)
    assert codes(stores.check_database(installation)) == [("problem", "database_corrupt")]
    records.unlink()
    assert codes(stores.check_database(installation)) == [("ok", "sqlite_absent")]
    (installation.data_dir / "index" / "t").mkdir(parents=True)
    assert codes(stores.check_database(installation)) == [("problem", "database_missing")]
    assert not records.exists()


def test_postgres_is_examined_without_creating_tables(installation: Settings, postgres_url: str) -> None:
    with servers.own_database(postgres_url) as url:
        settings = changed(installation, database_url=rendered(url), data_keys="k" * 32)
        assert codes(stores.check_database(settings)) == [("ok", "postgres_empty")]
        database.migrate(settings)
        assert codes(stores.check_database(settings)) == [("ok", "postgres")]
        assert codes(machine.check_clock(settings)) == [("ok", "clock")]
        with database.writing(settings) as session:
            session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '0019'")
        (finding,) = stores.check_database(settings)
        assert (finding.code, finding.command) == ("database_older", "opora migrate")
        database.close_all()


def rendered(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def test_a_silent_qdrant_is_started_as_it_was_installed(installation: Settings) -> None:
    (found,) = stores.check_index(changed(installation, qdrant_url="http://qdrant:6333"))
    assert (found.code, found.command) == ("qdrant_unreachable", "docker compose up --detach qdrant")
    assert f"\n{stores._DOCKER}\n" in PAGES["docs/operate/scale.md"]
    assert f"image: {stores._DOCKER.rpartition(' ')[2]}\n" in (ROOT / "compose.yaml").read_text(encoding="utf-8")


def test_redis_is_asked_for_its_time(installation: Settings, redis_url: str) -> None:
    settings = changed(installation, redis_url=redis_url)
    assert codes(stores.check_redis(settings)) == [("ok", "redis")]
    assert codes(machine.check_clock(settings)) == [("ok", "clock")]
    elsewhere = changed(installation, redis_url="gopher://x")
    assert codes(stores.check_redis(elsewhere)) == [("problem", "redis_url_invalid")]


def test_replicas_without_redis_are_warned_of(installation: Settings) -> None:
    assert codes(stores.check_redis(installation)) == [("ok", "redis_none")]
    server = changed(installation, database_url="postgresql+psycopg://opora@db/opora")
    assert codes(stores.check_redis(server)) == [("warning", "redis_single")]


# Models


def test_each_profile_in_use_has_its_models_listed(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with simulator_thread(Knobs(models=("qwen3:4b-instruct",))) as (_, url):
        monkeypatch.setenv("OPORA_OLLAMA_URL", url)
        get_settings.cache_clear()
        for tenant, profile in {"acme": "ollama", "globex": "openai"}.items():
            Registry().add(tenant)
            with acting_as(Tenant(tenant, "admin")):
                policy.change(profile=profile)
        findings = list(models.check_models(get_settings()))
    assert codes(iter(findings)) == [
        ("ok", "models_none"),
        ("ok", "model"),
        ("warning", "model_missing"),
        ("problem", "key_missing"),
    ]
    assert findings[2].command == "ollama pull qwen3:30b-instruct"


def test_a_profile_whose_pipeline_cannot_run_is_a_problem(
    installation: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copytree(installation.pipelines_dir / "ask", tmp_path / "ask")
    again = {"type": "components.retrieve.reranker.FeatureRanker", "init_parameters": {}}
    connections = [{"sender": "sorted.documents", "receiver": "expand.documents"}]
    overlay = {"components": {"sorted": again}, "connections": connections}
    (tmp_path / "ask" / "profiles" / "own.yaml").write_text(json.dumps(overlay), encoding="utf-8")
    assert codes(models.check_profiles(installation)) == [("ok", "profile")]
    monkeypatch.setenv("OPORA_PIPELINES_DIR", str(tmp_path))
    monkeypatch.setenv("OPORA_PROFILE", "own")
    get_settings.cache_clear()
    (finding,) = models.check_profiles(get_settings())
    assert (finding.status, finding.code) == ("problem", "pipeline_faulty")
    assert "sorted." in finding.words("en")


def test_embedders_that_do_not_fit_their_index_are_named(
    installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Registry().add("acme")
    with acting_as(Tenant("acme", "admin")):
        Ingest().run([SourceDocument("a", "Возврат", "Возврат товара возможен в течение 14 дней.", "a.md")])
    assert codes(models.check_encoder(get_settings())) == [("warning", "encoder_missing")]
    with simulator_thread(Knobs(models=("bge-m3:latest",), dimensions=384)) as (_, url):
        monkeypatch.setenv("OPORA_OLLAMA_URL", url)
        monkeypatch.setenv("OPORA_PROFILE", "ollama")
        get_settings.cache_clear()
        size, due = models.check_encoder(get_settings())
    assert (size.status, size.code, size.params["dimensions"]) == ("problem", "dimensions_foreign", 384)
    assert (due.code, due.command) == ("rebuild_due", "opora index rebuild --tenant acme")


# The service


def test_a_port_of_another_program_is_a_problem(installation: Settings, nowhere: str) -> None:
    port = int(nowhere.rpartition(":")[2])
    assert codes(proxy.check_service(changed(installation, port=port))) == [("ok", "service_stopped")]
    with simulator_thread() as (_, url):
        port = int(url.rpartition(":")[2])
        assert codes(proxy.check_service(changed(installation, port=port))) == [("problem", "port_taken")]


def test_the_service_of_the_data_folder_is_found_on_another_port(installation: Settings, nowhere: str) -> None:
    port = int(nowhere.rpartition(":")[2])
    locks.hold_index(changed(installation, port=port))
    try:
        (finding,) = proxy.check_service(installation)
    finally:
        locks.close_all()
    assert (finding.code, str(finding.params["address"]).rpartition(":")[2]) == ("service_silent", str(port))


def test_external_work_without_a_worker_is_warned_of(installation: Settings, postgres_url: str, nowhere: str) -> None:
    port = int(nowhere.rpartition(":")[2])
    with servers.own_database(postgres_url) as url:
        settings = changed(installation, database_url=rendered(url), data_keys="k" * 32, worker="external", port=port)
        assert codes(proxy.check_service(settings)) == [("ok", "service_stopped")]
        database.migrate(settings)
        assert codes(proxy.check_service(settings)) == [("ok", "service_stopped"), ("warning", "worker_missing")]
        with database.writing(settings) as session:
            session.connection().exec_driver_sql("INSERT INTO procrastinate_workers DEFAULT VALUES")
        assert codes(proxy.check_service(settings)) == [("ok", "service_stopped")]
        database.close_all()


def test_an_open_address_without_a_public_url_is_a_warning(installation: Settings) -> None:
    opened = changed(installation, host="0.0.0.0")
    assert codes(proxy.check_proxy(opened)) == [("warning", "public_url_missing")]
    assert codes(proxy.check_proxy(installation)) == [("ok", "proxy_none")]

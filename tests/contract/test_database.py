"""An unresponsive database causes a bounded wait, and then the caller may try again."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from settings import Settings
from tenants.core.errors import CallerError, TryAgain
from tenants.storage import database
from tenants.work import queue_postgres
from tests.gateway import Gateway


@pytest.fixture
def brief(postgres_url: str) -> Settings:
    """An installation with the shortest timeouts for PostgreSQL."""
    return Settings.model_validate({"database_url": postgres_url, "database_statement_seconds": 1})


def test_a_slow_statement_is_cancelled(brief: Settings) -> None:
    with pytest.raises(TryAgain), database.reading(brief) as session:
        session.execute(text("SELECT pg_sleep(600)"))
    database.check(brief)
    database.close_all()


def test_waiting_for_a_lock_times_out_like_a_statement(brief: Settings) -> None:
    lock = text("SELECT pg_advisory_xact_lock(1)")
    with database.engine(brief).begin() as holder:
        holder.execute(lock)
        with pytest.raises(TryAgain), database.reading(brief) as session:
            session.execute(lock)
    database.close_all()


def test_a_server_that_says_nothing_any_more_is_given_up(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_GRACE_SECONDS", 0)
    with Gateway.to(postgres_url) as gateway:
        url = make_url(postgres_url).set(query={}, host="127.0.0.1", port=gateway.port)
        brief = {"database_statement_seconds": 1, "database_connect_seconds": 1}
        settings = Settings.model_validate({"database_url": url.render_as_string(), **brief})
        database.check(settings)
        gateway.mode = "hangs"
        for _ in range(2):
            with pytest.raises(TryAgain):
                database.check(settings)
        gateway.mode = "passes"
        database.check(settings)
    database.close_all()


def test_every_thread_that_computes_has_a_connection(postgres_url: str) -> None:
    """SQLAlchemy's default pool has fifteen connections, so a sixteenth thread would wait in vain."""
    settings = Settings.model_validate({"database_url": postgres_url, "database_statement_seconds": 1, "workers": 20})
    with ExitStack() as held:
        connections = [held.enter_context(database.engine(settings).connect()) for _ in range(20)]
        assert all(connection.scalar(text("SELECT 1")) == 1 for connection in connections)
    database.close_all()


def test_a_process_waits_a_limited_time_for_one_of_its_eight_connections(brief: Settings) -> None:
    with ExitStack() as held:
        for _ in range(8 - queue_postgres._CONNECTIONS):
            held.enter_context(database.engine(brief).connect())
        with pytest.raises(TryAgain):
            database.check(brief)
    database.check(brief)
    database.close_all()


def test_timeouts_belong_to_the_transaction(postgres_url: str) -> None:
    settings = Settings.model_validate({"database_url": postgres_url, "database_statement_seconds": 7})
    with database.reading(settings) as session:
        assert session.scalar(text("SHOW statement_timeout")) == "7s"
        assert session.scalar(text("SHOW idle_in_transaction_session_timeout")) == "14s"
    with database.engine(settings).connect() as connection:
        assert connection.scalar(text("SHOW statement_timeout")) == "0"
    database.close_all()


@pytest.mark.timeout(120)
def test_connecting_to_a_silent_server_times_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql+psycopg://opora:secret@127.0.0.1:{silent.getsockname()[1]}/opora"
        settings = Settings.model_validate({"database_url": url, "database_connect_seconds": 1})
        with pytest.raises(TryAgain):
            database.check(settings)
    assert "the records cannot be reached: " in caplog.text
    assert "secret" not in caplog.text
    database.close_all()


def test_an_unopenable_sqlite_file_raises_try_again(tmp_path: Path) -> None:
    (tmp_path / "opora.db").mkdir()
    with pytest.raises(TryAgain):
        database.check(Settings.model_validate({"data_dir": tmp_path}))
    database.close_all()


@pytest.mark.parametrize(
    "url", ["nonsense", "postgres://secret@host/opora", "mysql://secret@host/opora", "postgresql+nodriver://secret@h/o"]
)
def test_a_url_of_no_database_we_know_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(CallerError, match="database_url_invalid") as refused:
        database.engine(Settings.model_validate({"database_url": url}))
    assert not refused.value.params

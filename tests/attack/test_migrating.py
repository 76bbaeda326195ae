"""An upgrade of a database on a server, while replicas of the older version keep writing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, event

from settings import Settings
from tenants.storage import database
from tests import servers
from tests.service.serving import in_force

BEFORE_INDEXES = "0027"
TABLE = "LOCK TABLE chats IN ROW EXCLUSIVE MODE"
"""Lock that every writer of messages takes."""


@pytest.fixture
def old(postgres_url: str, tmp_path: Path) -> Iterator[Settings]:
    """A database in use, before a migration that builds indexes over all chats."""
    with servers.own_database(postgres_url) as url:
        target = create_engine(url)
        with target.begin() as connection:
            database._migrate(connection, BEFORE_INDEXES)
        target.dispose()
        settings = Settings(
            data_dir=tmp_path,
            database_url=url.render_as_string(hide_password=False),
            data_keys=SecretStr("the same for all replicas of this one"),
        )
        with in_force(settings):
            yield settings
        database.close_all()


def test_replicas_write_while_an_index_is_built(old: Settings) -> None:
    address = old.database.replace("+psycopg", "")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(address) as writer:
        writer.execute(TABLE)
        upgrade = pool.submit(database.migrate, old)
        with psycopg.connect(address, autocommit=True) as admin:
            building = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%chats%'"
            while admin.execute(building + " AND state = 'active'").fetchone() != (1,):
                assert not upgrade.done()
                Event().wait(0.05)
            with admin.transaction():
                admin.execute("SET LOCAL lock_timeout = '2s'")
                admin.execute(TABLE)
        writer.rollback()
        assert upgrade.result(60) == (BEFORE_INDEXES, database.HEAD)
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'ix_chats_assignee'::regclass"
        assert writer.execute(valid).fetchall() == [(True,)]


def test_an_upgrade_goes_on_where_it_was_interrupted(old: Settings) -> None:
    def interrupt(*executed: object) -> None:
        if "DROP TABLE upload_pieces" in str(executed[2]):
            raise KeyboardInterrupt

    event.listen(Engine, "before_cursor_execute", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            database.migrate(old)
    finally:
        event.remove(Engine, "before_cursor_execute", interrupt)
    assert database.migrate(old) == ("0031", database.HEAD)

"""Connections to PostgreSQL: fewer than a replica may use, and cut while a request runs."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import URL, create_engine, text

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain
from tenants.storage import database
from tenants.work import idempotency, locks
from tests import servers
from tests.attack.attacking import VICTIM
from tests.service.serving import ROOT, in_force

KEY, REQUEST = "a-key", "a-hash"
CUT = (
    "SELECT count(pg_terminate_backend(pid, 30000)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
BEGIN_AGAIN = f"""
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy
from tenants.work import idempotency
with acting_as(Tenant("{VICTIM}", "anna")):
    try:
        idempotency.begin("{KEY}", "{REQUEST}")
    except Busy as busy:
        print(busy.code)
"""


@pytest.fixture
def url(postgres_url: str) -> Iterator[URL]:
    """A database of an ordinary role, to which limits apply."""
    with servers.own_database(postgres_url) as url:
        yield url
    database.close_all()


def test_a_server_that_grants_few_connections_is_shared(url: URL, postgres_url: str, tmp_path: Path) -> None:
    admin = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"ALTER DATABASE {url.database} CONNECTION LIMIT 3"))
    admin.dispose()
    limited = url.render_as_string(hide_password=False)
    settings = Settings.model_validate({"database_url": limited, "data_dir": tmp_path})

    def work(number: int) -> int:
        with database.reading(settings) as session:
            session.execute(text("SELECT pg_sleep(0.05)"))
            return session.scalar(text("SELECT CAST(:number AS INTEGER)"), {"number": number}) or 0

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(work, range(60))) == list(range(60))
    database.close_all()
    settings = settings.model_copy(update={"database_statement_seconds": 1})
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(database.engine(settings).connect())
        with pytest.raises(TryAgain):
            work(0)
    assert work(1) == 1


def test_a_replica_whose_connections_are_cut_keeps_its_requests(url: URL, tmp_path: Path) -> None:
    address = url.render_as_string(hide_password=False)
    keys = SecretStr("the same for all replicas of this one")
    with in_force(Settings(data_dir=tmp_path, database_url=address, data_keys=keys)):
        Registry().add(VICTIM)
        with acting_as(Tenant(VICTIM, "anna")):
            assert idempotency.begin(KEY, REQUEST) is None
            with psycopg.connect(address.replace("+psycopg", "")) as admin:
                assert admin.execute(CUT).fetchone() != (0,)
            other = subprocess.check_output([sys.executable, "-c", BEGIN_AGAIN], cwd=ROOT, text=True)
            assert other.strip() == "request_in_progress"
            idempotency.finish(KEY, "answer")
            assert idempotency.begin(KEY, REQUEST) == "answer"
        locks.close_all()

"""Contract tests: each test runs against every backend of the index or of the records.

Qdrant's server is used if `OPORA_TEST_QDRANT_URL` is set, PostgreSQL if it is installed (`tests.servers`). Tenants
share a collection (`tiered`) of that server, or else of a fake.
"""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.chats import store
from tenants.chats.records import Chat
from tenants.core.context import Tenant, acting_as
from tenants.storage import bus, database
from tenants.work import locks
from tests import fake_qdrant, places
from tests.fake_qdrant import FakeQdrant
from tests.servers import EmptiedDatabase, absent, own_database

VISITOR = Tenant("acme", "visitor-1")


def _qdrant_url() -> str:
    url = os.environ.get("OPORA_TEST_QDRANT_URL")
    if not url:
        absent("qdrant", "Qdrant (set OPORA_TEST_QDRANT_URL)")
    return url


@pytest.fixture(autouse=True)
def _queries_are_in_place(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test that queries on an event loop, or opens a session inside another one."""
    places.watch()
    yield
    assert not [record for record in caplog.get_records("call") if places.MISPLACED in record.getMessage()]


@pytest.fixture(scope="session")
def fake_url() -> Iterator[tuple[FakeQdrant, str]]:
    """A fake Qdrant server and its URL."""
    fake = FakeQdrant()
    with fake_qdrant.running(fake) as url:
        yield fake, url


@pytest.fixture(params=["edge", "memory", "tiered", pytest.param("server", marks=pytest.mark.server)])
def backend(request: pytest.FixtureRequest, installation: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set up the installation's index on this engine."""
    name = str(request.param)
    if name == "tiered":
        url = os.environ.get("OPORA_TEST_QDRANT_URL") or request.getfixturevalue("fake_url")[1]
        monkeypatch.setenv("OPORA_PLACEMENT", "tiered")
    elif name != "edge":
        url = ":memory:" if name == "memory" else _qdrant_url()
    if name != "edge":
        monkeypatch.setenv("OPORA_QDRANT_URL", url)
        get_settings.cache_clear()
    return name


@pytest.fixture
def tenant(backend: str) -> Iterator[Tenant]:
    """A registered tenant in context with a new id, so that servers may be shared."""
    caller = Tenant(f"t{uuid4().hex}", "anna")
    Registry().add(caller.tenant_id)
    with acting_as(caller):
        yield caller


@pytest.fixture(scope="session")
def migrated(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a PostgreSQL database with the empty schema, used as a template."""
    with own_database(postgres_url) as url:
        database.migrate(
            Settings(
                data_dir=tmp_path_factory.mktemp("migrated"), database_url=url.render_as_string(hide_password=False)
            )
        )
        assert url.database
        yield url.database


@pytest.fixture(scope="session")
def emptied(postgres_url: str, migrated: str) -> Iterator[EmptiedDatabase]:
    """A PostgreSQL database for one test after the other."""
    database = EmptiedDatabase(postgres_url, migrated)
    yield database
    database.drop()


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("pgbouncer", marks=pytest.mark.chaos)])
def records(
    request: pytest.FixtureRequest, installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """Set up the installation's records on this database."""
    if request.param == "sqlite":
        yield installation
        return
    with request.getfixturevalue("emptied").lent() as url:
        used = request.getfixturevalue("pooled")(url) if request.param == "pgbouncer" else url
        monkeypatch.setenv("OPORA_DATABASE_URL", used.render_as_string(hide_password=False))
        get_settings.cache_clear()
        yield get_settings()
        locks.close_all()
        database.close_all()


@pytest.fixture
def acme(records: Settings) -> Iterator[Tenant]:
    """Anna of Acme in context, with Globex as another tenant of the installation."""
    for tenant_id in ("acme", "globex"):
        Registry(records).add(tenant_id)
    with acting_as(Tenant("acme", "anna")) as caller:
        yield caller


@pytest.fixture
def chat(records: Settings) -> Iterator[Chat]:
    """A visitor's chat with the assistant; the visitor is in context."""
    for tenant_id in ("acme", "other"):
        Registry(records).add(tenant_id)
    with acting_as(VISITOR):
        yield store.start(locale="ru")
    bus.close_all()

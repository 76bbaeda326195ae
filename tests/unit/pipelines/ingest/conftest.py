"""A tenant of its own for each test, on disk as in production."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants import database, index
from tenants.context import Tenant, acting_as
from tenants.registry import Registry


@pytest.fixture
def tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path / "data"))
    get_settings.cache_clear()
    Registry().add("acme")
    with acting_as(Tenant("acme", "tests")) as acme:
        yield acme
    index.close_all()
    database.close_all()
    get_settings.cache_clear()


@pytest.fixture(scope="session")
def ingest() -> Ingest:
    return Ingest()

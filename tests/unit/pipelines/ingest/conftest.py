"""A tenant of its own for each test, on disk as in production."""

from collections.abc import Iterator

import pytest

from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.context import Tenant, acting_as
from tenants.registry import Registry


@pytest.fixture
def tenant(installation: Settings) -> Iterator[Tenant]:
    Registry().add("acme")
    with acting_as(Tenant("acme", "tests")) as acme:
        yield acme


@pytest.fixture(scope="session")
def ingest() -> Ingest:
    return Ingest()

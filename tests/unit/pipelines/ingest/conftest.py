"""A separate tenant for each test, on disk as in production."""

from collections.abc import Iterator

import pytest

from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as


@pytest.fixture
def tenant(installation: Settings) -> Iterator[Tenant]:
    Registry().add("acme")
    with acting_as(Tenant("acme", "tests")) as acme:
        yield acme


@pytest.fixture(scope="session")
def ingest() -> Ingest:
    return Ingest()

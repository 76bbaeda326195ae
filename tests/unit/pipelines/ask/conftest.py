"""Installations for the ask pipeline's tests, shared by the tests of a module because they only read."""

from collections.abc import Iterator

import pytest

from pipelines.ingest.usecase import Ingest
from settings import ROOT
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tests.installations import installed

SHOP = Tenant("shop", "anna", SCOPES)


@pytest.fixture(scope="module")
def shared_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("data")):
        yield


@pytest.fixture(scope="module")
def empty_shop(shared_installation: None) -> Iterator[Tenant]:
    """A tenant without a knowledge base, in context."""
    Registry().add("empty")
    with acting_as(Tenant("empty", "anna", SCOPES)) as tenant:
        yield tenant


@pytest.fixture(scope="module")
def shop(shared_installation: None) -> Iterator[Tenant]:
    """A tenant whose embedded index holds the demo knowledge base, in context."""
    Registry().add(SHOP.tenant_id)
    with acting_as(SHOP):
        Ingest().run_path(ROOT / "evaluation" / "demo" / "ru")
        yield SHOP

"""Installations for the ask pipeline's tests, shared by the tests of a module because they only read."""

from collections.abc import Iterator

import pytest

from pipelines.ingest.usecase import Ingest
from settings import ROOT, get_settings
from tenants import database, index
from tenants.context import SCOPES, Tenant, acting_as
from tenants.registry import Registry

SHOP = Tenant("shop", "anna", SCOPES)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPORA_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        get_settings.cache_clear()
        yield
        index.close_all()
        database.close_all()
    get_settings.cache_clear()


@pytest.fixture(scope="module")
def empty_shop(installation: None) -> Iterator[Tenant]:
    """A tenant without a knowledge base, in context."""
    Registry().add("empty")
    with acting_as(Tenant("empty", "anna", SCOPES)) as tenant:
        yield tenant


@pytest.fixture(scope="module")
def shop(installation: None) -> Iterator[Tenant]:
    """A tenant whose embedded index holds the demo knowledge base, in context."""
    Registry().add(SHOP.tenant_id)
    with acting_as(SHOP):
        Ingest().run_path(ROOT / "evaluation" / "demo" / "ru")
        yield SHOP

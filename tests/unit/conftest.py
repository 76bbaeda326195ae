"""Fixtures for unit tests: a tenant on disk as in production, and what it knows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.datasets.fixture import DEMO
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon
from tests.installations import installed

SHOP = Tenant("shop", "anna", SCOPES)


@pytest.fixture
def terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A knowledge base of nine chunks that explains codes like E20, and counts no words."""
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}, 1, {"L1.D2.T0": 1}))


@pytest.fixture
def tenant(installation: Settings) -> Iterator[Tenant]:
    """A tenant without documents, in context."""
    Registry().add("acme")
    with acting_as(Tenant("acme", "tests")) as acme:
        yield acme


@pytest.fixture(scope="session")
def ingest() -> Ingest:
    return Ingest()


@pytest.fixture(scope="session")
def demo_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed installation whose one tenant, `SHOP`, has the demo knowledge base."""
    folder = tmp_path_factory.mktemp("demo")
    with installed(folder):
        Registry().add(SHOP.tenant_id)
        with acting_as(SHOP):
            Ingest().run_path(DEMO / "ru")
    return folder


@pytest.fixture(scope="module")
def shared_installation(demo_shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An installation with `SHOP` for all tests of a module, which only read it."""
    with installed(tmp_path_factory.mktemp("data"), demo_shop):
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
    with acting_as(SHOP):
        yield SHOP

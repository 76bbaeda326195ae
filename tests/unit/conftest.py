"""Fixtures for unit tests: a tenant on disk as in production, and what it knows."""

from collections.abc import Iterator

import pytest

from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon


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

"""Fixtures for tests of evaluation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation import workspace
from settings import get_settings
from tenants import index
from tenants.storage import database
from tenants.work import locks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("DATA_DIR", "DATABASE_URL", "QDRANT_URL", "RATE_LIMIT_PER_MINUTE", "RATE_LIMIT_PER_DAY"):
        monkeypatch.setenv(f"OPORA_{name}", "1")  # remembered, so that what `enter` sets is undone
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield workspace.enter(tmp_path)
    index.close_all()
    locks.close_all()
    database.close_all()
    get_settings.cache_clear()

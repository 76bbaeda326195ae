"""An installation of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from settings import Settings, get_settings
from tenants import database, index


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield get_settings()
    index.close_all()
    database.close_all()
    get_settings.cache_clear()

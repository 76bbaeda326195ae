"""What all tests share."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import components as _components  # noqa: F401  before the first import of Haystack: no telemetry from tests
from settings import Settings
from tests.installations import installed

# Some hundred generated tests with 40 examples each, so that all tests together take minutes; the same ones each time,
# so that nobody is held up by what somebody else broke.
# Machines that run the tests are shared and slow at times; a generated test fails for what it finds, not for when.
settings.register_profile("opora", deadline=None, database=None, max_examples=40, derandomize=True)
settings.load_profile("opora")

_BETWEEN_COLLECTIONS = 20_000


def pytest_collection_finish() -> None:
    """What importing made stays for good; without this the collector walks all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Settings]:
    """An installation of the test's own."""
    with installed(tmp_path / "data") as settings:
        yield settings

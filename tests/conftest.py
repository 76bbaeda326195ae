"""Fixtures for all tests."""

import gc
import os
import re
import socket
import ssl
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase
from sqlalchemy import URL, Engine, create_engine

import components as _components  # noqa: F401  before the first import of Haystack: no telemetry from tests
from settings import Settings
from tenants.desk import operators
from tenants.storage import database
from tests import servers
from tests.installations import installed

# A change is tested with a few examples, the same ones each time, so that it does not fail for an older defect. New
# defects are found by `OPORA_TEST_EXAMPLES=nightly make test`: many random examples, failures kept in `.hypothesis`.
# Machines that run the tests are shared and slow at times, so no example has a deadline.
settings.register_profile("change", deadline=None, database=None, max_examples=10, derandomize=True)
settings.register_profile(
    "nightly",
    deadline=None,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    max_examples=500,
    print_blob=True,
)
settings.load_profile(os.environ.get("OPORA_TEST_EXAMPLES", "change"))

# No test asks a hub or a mirror for anything, or finds the encoder of the checkout's own demo. Those that need a model
# lay one out themselves.
os.environ |= {"OPORA_FETCH_MODELS": "false", "OPORA_MODELS_DIR": os.devnull}

_BETWEEN_COLLECTIONS = 20_000
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Set before the other modules are imported, so that they are not scanned again and again while they load.
gc.set_threshold(_BETWEEN_COLLECTIONS)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Leave a random id out of a test's name: pytest-xdist needs the same names in each of its processes."""
    return _UUID.sub("uuid", val) if isinstance(val, str) and _UUID.search(val) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test that uses Chromium."""
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.browser)


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection, which would scan them again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Collect connections that clients of models left open when a call was given up.

    Haystack 3.4 leaves the stream of an OpenAI client open, which refers to itself, so its socket is closed when
    garbage is collected, here at the latest. Any other resource that is left open still fails the run.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="unclosed <socket", category=ResourceWarning)
        for _ in range(5):  # an object that closes another on its way out leaves that for the next round
            gc.collect()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report skipped tests whose server is missing, so that they do not look like passed ones."""
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    missing = Counter(reason.removeprefix("Skipped: ") for reason in skipped if servers.MISSING in reason)
    if missing:
        terminalreporter.section("NOT TESTED", sep="!", red=True, bold=True)
        for reason, count in missing.items():
            terminalreporter.write_line(f"{count} tests were skipped, {reason}", red=True, bold=True)


@pytest.fixture(scope="session", autouse=True)
def password_hasher() -> Iterator[PasswordHasher]:
    """Make password hashes cheap in this process, and return the hasher of the product."""
    product = operators._HASHER
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "_HASHER", PasswordHasher.from_parameters(CHEAPEST))
        yield product


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    """Compile a statement once for all SQLite databases of this process: tests open one each.

    SQLAlchemy compiles for a dialect, of which each engine has its own. That was a third of the time of these tests.
    """
    template = create_engine("sqlite://")
    template.dialect._has_events = True
    with template.connect():  # sets the dialect up, even if the first database of the tests cannot be opened
        pass

    def create(url: URL, **options: Any) -> Engine:  # noqa: ANN401
        engine = create_engine(url, **options)
        if engine.dialect.name == "sqlite":
            # Its pool connects by the dialect that it was made with: faults listen to that of the template.
            engine.dialect.dispatch, engine.dialect._has_events = template.dialect.dispatch, True
            engine.dialect = engine.pool._dialect = template.dialect
            engine._compiled_cache = template._compiled_cache
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "create_engine", create)
        yield
    template.dispose()


@pytest.fixture(scope="session", autouse=True)
def _authorities_read_once() -> Iterator[None]:
    """Read the certificates of authorities once: that takes 20 ms, and every HTTP client of these tests would do it."""
    create = ssl.create_default_context

    @cache
    def created(_variables: tuple[str | None, ...], *given: object, **named: object) -> ssl.SSLContext:
        return create(*given, **named)  # type: ignore[arg-type]

    def shared(*given: object, **named: object) -> ssl.SSLContext:
        return created((os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")), *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", shared)
        yield


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a PostgreSQL server; the test is skipped without one."""
    with servers.postgres() as url:
        yield url


@pytest.fixture(scope="session")
def pooled(postgres_url: str) -> Iterator[Callable[[URL], URL]]:
    """Turn the URL of a database into the one through PgBouncer; the test is skipped without it."""
    with servers.pgbouncer(postgres_url) as through:
        yield through


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """URL of a Redis server; the test is skipped without one."""
    with servers.redis() as url:
        yield url


@pytest.fixture(scope="session")
def nowhere() -> Iterator[str]:
    """Host and port that refuse connections for the whole session: the port is bound, but no socket listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="session")
def openai_url() -> str:
    """URL of a language model's server; the test is skipped without one."""
    return servers.openai()


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Settings]:
    """An installation for a single test."""
    with installed(tmp_path / "data") as settings:
        yield settings

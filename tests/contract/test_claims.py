"""Claims behave the same with file locks and with leases in PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from threading import Event

import pytest
from sqlalchemy.exc import OperationalError

from settings import Settings, get_settings
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, TryAgain
from tenants.storage import database
from tenants.work import leases, locks
from tenants.work.leases import LeaseClaims
from tenants.work.locks import Claims, FileClaims
from tests.servers import own_database
from tests.webhooks import wait_until

Process = Callable[[], Claims]


@pytest.fixture(params=["files", "postgresql"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """Create the claims of another process."""
    all_claims: list[Claims] = []
    settings = request.getfixturevalue("server") if request.param == "postgresql" else None

    def make() -> Claims:
        all_claims.append(on_server(settings) if settings else FileClaims(tmp_path / "claims"))
        return all_claims[-1]

    yield make
    for item in all_claims:
        item.close()


@pytest.fixture
def server(postgres_url: str, migrated: str) -> Iterator[Settings]:
    """An installation on PostgreSQL."""
    with own_database(postgres_url, migrated) as url:
        yield Settings.model_validate({"database_url": url.render_as_string(hide_password=False)})
        database.close_all()


def on_server(settings: Settings) -> LeaseClaims:
    return LeaseClaims(settings, f"~process-{token_hex(8)}")


@pytest.fixture
def name(tmp_path: Path) -> str:
    """A name that no other test uses."""
    return tmp_path.name


def test_a_claim_is_held_by_one_process_only(process: Process, name: str) -> None:
    ours, theirs = process(), process()
    assert ours.take(name)
    assert not theirs.take(name)
    assert not ours.take(name)
    assert (ours.holds(name), theirs.holds(name)) == (True, False)
    assert theirs.take(f"{name}-other")


def test_a_released_claim_can_be_taken(process: Process, name: str) -> None:
    ours, theirs = process(), process()
    assert ours.take(name)
    ours.release(name)
    assert not ours.holds(name)
    assert theirs.take(name)
    assert not ours.take(name)


def test_a_process_that_ends_releases_all_claims(process: Process, name: str) -> None:
    ours, theirs = process(), process()
    assert ours.take(name)
    assert ours.take(f"{name}-other")
    ours.close()
    assert theirs.take(name)
    assert theirs.take(f"{name}-other")


def test_anybody_can_see_who_holds_a_claim(process: Process, name: str) -> None:
    ours, theirs = process(), process()
    assert not theirs.is_held(name)
    assert ours.take(name)
    assert (ours.is_held(name), theirs.is_held(name)) == (True, True)
    ours.close()
    assert not theirs.is_held(name)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let leases end after a second without renewal."""
    monkeypatch.setattr(leases, "_END", leases._NOW + 1.0)
    monkeypatch.setattr(leases, "_RENEW_SECONDS", 0.2)


@pytest.mark.usefixtures("short_leases")
def test_a_lease_is_renewed_and_ends_with_its_process(name: str, server: Settings) -> None:
    ours, theirs = on_server(server), on_server(server)
    assert ours.take(name)
    Event().wait(1.5)
    assert ours.holds(name)
    assert not theirs.take(name)
    ours._renewing.close(patience=30)  # as if its process were stopped
    wait_until(lambda: theirs.take(name))
    assert not ours.holds(name)
    ours.release(name)
    assert theirs.holds(name), "a late process takes nothing away"
    theirs.close()


@pytest.mark.usefixtures("short_leases")
def test_a_lease_whose_release_did_not_arrive_ends(
    name: str, server: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = on_server(server), on_server(server)
    assert ours.take(name)

    def away(_settings: Settings) -> None:
        raise TryAgain

    with monkeypatch.context() as patch:
        patch.setattr(database, "single_statement", away)
        ours.release(name)
    wait_until(lambda: theirs.take(name))
    for one in (ours, theirs):
        one.close()


def test_a_lease_can_be_asked_for(name: str, server: Settings) -> None:
    ours, theirs = on_server(server), on_server(server)
    theirs.want(name)
    assert ours.take(name)
    assert not ours.is_wanted(name)
    theirs.want(name)
    assert ours.is_wanted(name)
    ours.release(name)
    assert theirs.take(name)
    assert not theirs.is_wanted(name)
    ours.close()
    theirs.close()


def test_a_database_that_is_not_there_raises_try_again(nowhere: str) -> None:
    settings = Settings.model_validate({"database_url": f"postgresql+psycopg://opora@{nowhere}/opora"})
    with pytest.raises((TryAgain, OperationalError)):
        on_server(settings)


def test_a_process_is_alive_until_it_ends(acme: None, other: FileClaims) -> None:
    assert locks.is_alive(locks.this_process())
    assert other.is_held(f"~process-{locks.this_process()}")
    other.take("~process-other")
    assert locks.is_alive("other")
    other.close()
    assert not locks.is_alive("other")
    assert not locks.is_alive("")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[FileClaims]:
    """The claims of another process on the same data folder."""
    file_claims = FileClaims(tmp_path / "claims")
    yield file_claims
    file_claims.close()


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    with acting_as(Tenant("acme", "tests")):
        yield
    locks.close_all()
    get_settings.cache_clear()


def test_ingesting_is_exclusive_and_reentrant(acme: None, other: Claims) -> None:
    with locks.ingesting() as outer, locks.ingesting(patience=0) as inner:
        assert inner is outer
        assert not other.take("acme")
        with acting_as(Tenant("globex", "tests")):
            assert other.take("globex")
    assert other.take("acme")
    with pytest.raises(Busy, match="ingest_busy"), locks.ingesting(patience=0):
        pass
    other.release("acme")
    with locks.ingesting(patience=0) as claim:
        claim.check()
        locks.close_all()
        with pytest.raises(Busy, match="ingest_busy"):
            claim.check()


def test_acting_for_another_tenant_is_not_nesting(acme: None, other: Claims) -> None:
    with locks.ingesting(), acting_as(Tenant("globex", "tests")), locks.ingesting():
        assert not other.take("acme")
        assert not other.take("globex")
    assert other.take("globex")

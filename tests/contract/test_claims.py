"""Claims on tenants: the same promises by locks on files and by Redis."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from settings import get_settings
from tenants import claims
from tenants.claims import Claims, FileClaims
from tenants.claims_redis import RedisClaims
from tenants.context import Tenant, acting_as
from tenants.errors import Busy, TryAgain

Process = Callable[[], Claims]
PATIENCE_SECONDS = 30


@pytest.fixture(params=["files", "redis"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """Makes the claims of another process."""
    all_claims: list[Claims] = []
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""

    def make() -> Claims:
        all_claims.append(RedisClaims(url) if url else FileClaims(tmp_path / "claims"))
        return all_claims[-1]

    yield make
    for item in all_claims:
        item.close()


@pytest.fixture
def name(tmp_path: Path) -> str:
    """One that no other test uses."""
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


def test_a_claim_in_redis_outlives_its_lease_while_its_process_lives(name: str, redis_url: str) -> None:
    ours, theirs = RedisClaims(redis_url, lease_seconds=2), RedisClaims(redis_url)
    assert ours.take(name)
    for _ in range(30):
        assert not theirs.take(name)
        assert ours.holds(name)
        ours._closing.wait(0.1)
    ours.close()
    theirs.close()


def test_a_claim_missing_from_redis_is_lost(name: str, redis_url: str) -> None:
    ours, theirs = RedisClaims(redis_url, lease_seconds=0.1), RedisClaims(redis_url)
    assert ours.take(name)
    ours._redis.flushdb()
    assert theirs.take(name)
    ours._renew(name)
    assert not ours.holds(name)
    ours.release(name)
    assert theirs.holds(name)
    ours.close()
    theirs.close()


def test_slow_redis_for_one_tenant_does_not_delay_others(
    name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = RedisClaims(redis_url)
    asked, may_answer = Event(), Event()
    usual = ours._redis.set

    def set_slowly(key: str, value: str, *, nx: bool, px: int) -> object:
        if key.endswith("-slow"):
            asked.set()
            assert may_answer.wait(PATIENCE_SECONDS)
        return usual(key, value, nx=nx, px=px)

    monkeypatch.setattr(ours._redis, "set", set_slowly)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(ours.take, f"{name}-slow")
        assert asked.wait(PATIENCE_SECONDS)
        try:
            assert pool.submit(ours.take, name).result(PATIENCE_SECONDS)
            assert not ours.take(f"{name}-slow"), "another thread is about to have it"
            assert not ours.holds(f"{name}-slow")
        finally:
            may_answer.set()
        assert slow.result(PATIENCE_SECONDS)
        assert ours.holds(f"{name}-slow")
    ours.close()


def test_unreachable_redis_raises_try_again(name: str, nowhere: str) -> None:
    claims = RedisClaims(f"redis://{nowhere}/0")
    with pytest.raises(TryAgain, match="claims_unreachable"):
        claims.take(name)
    claims.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Claims]:
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
    claims.close_all()
    get_settings.cache_clear()


def test_ingesting_is_exclusive_and_reentrant(acme: None, other: Claims) -> None:
    with claims.ingesting() as outer, claims.ingesting(patience=0) as inner:
        assert inner is outer
        assert not other.take("acme")
        with acting_as(Tenant("globex", "tests")):
            assert other.take("globex")
    assert other.take("acme")
    with pytest.raises(Busy, match="ingest_busy"), claims.ingesting(patience=0):
        pass
    other.release("acme")
    with claims.ingesting(patience=0) as claim:
        claim.check()
        claims.close_all()
        with pytest.raises(Busy, match="ingest_busy"):
            claim.check()


def test_acting_for_another_tenant_is_not_nesting(acme: None, other: Claims) -> None:
    with claims.ingesting(), acting_as(Tenant("globex", "tests")), claims.ingesting():
        assert not other.take("acme")
        assert not other.take("globex")
    assert other.take("globex")

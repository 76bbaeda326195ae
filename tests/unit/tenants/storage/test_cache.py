"""A kept value is never older than a write in this process."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from tenants.core.errors import TryAgain
from tenants.storage import cache as module
from tenants.storage.cache import FRESH_SECONDS, REST_SECONDS, STALE_SECONDS, TenantCache
from tests.clocks import Clock

KEY = ("database", "acme")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(module, "monotonic", moved)
    return moved


def test_a_value_is_loaded_once_until_it_is_old(clock: Clock) -> None:
    cache: TenantCache[int] = TenantCache()
    assert [cache.get(KEY, lambda known: (known or 0) + 1) for _ in range(3)] == [1, 1, 1]
    clock.now += FRESH_SECONDS
    assert cache.get(KEY, lambda known: (known or 0) + 1) == 2


def test_a_write_is_seen_at_once_and_the_last_value_is_built_upon(clock: Clock) -> None:
    cache: TenantCache[int] = TenantCache()
    cache.get(KEY, lambda _: 5)
    cache.expire(KEY)
    assert cache.get(KEY, lambda known: (known or 0) + 1) == 6


def test_a_write_while_loading_is_not_hidden(clock: Clock) -> None:
    cache: TenantCache[str] = TenantCache()

    def overtaken(_known: str | None) -> str:
        cache.expire(KEY)
        return "before the write"

    assert cache.get(KEY, overtaken) == "before the write"
    assert cache.get(KEY, lambda _: "after") == "after"


def _away(_known: object) -> int:
    raise TryAgain


def test_the_last_value_serves_on_while_the_database_is_away(clock: Clock) -> None:
    cache: TenantCache[int] = TenantCache()
    with pytest.raises(TryAgain):
        cache.get(KEY, _away)
    cache.get(KEY, lambda _: 5)
    clock.now += FRESH_SECONDS
    assert cache.get(KEY, _away) == 5
    assert cache.get(KEY, lambda _: 6) == 5, "it is left alone for a moment"
    clock.now += REST_SECONDS
    assert cache.get(KEY, lambda _: 6) == 6
    clock.now += STALE_SECONDS
    with pytest.raises(TryAgain):
        cache.get(KEY, _away)


def test_what_this_process_has_changed_is_not_served_on(clock: Clock) -> None:
    cache: TenantCache[int] = TenantCache()
    cache.get(KEY, lambda _: 5)
    cache.expire(KEY)
    with pytest.raises(TryAgain):
        cache.get(KEY, _away)


def test_nobody_waits_for_a_database_that_hangs(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    cache: TenantCache[int] = TenantCache()
    answers, loads = Event(), []

    def hanging(_known: int | None) -> int:
        loads.append(1)
        assert answers.wait(60)
        return 6

    cache.get(KEY, lambda _: 5)
    clock.now += FRESH_SECONDS
    assert [cache.get(KEY, hanging) for _ in range(3)] == [5, 5, 5]
    clock.now += REST_SECONDS
    assert cache.get(KEY, hanging) == 5
    assert len(loads) == 1
    answers.set()
    clock.now += REST_SECONDS
    assert _eventually(lambda: cache.get(KEY, hanging) == 6)


def _eventually(happens: Callable[[], bool]) -> bool:
    return any(happens() or Event().wait(0.05) for _ in range(600))


def test_tenants_do_not_share(clock: Clock) -> None:
    cache: TenantCache[str] = TenantCache()
    assert cache.get(KEY, lambda _: "a") == "a"
    assert cache.get(("database", "other"), lambda _: "b") == "b"
    assert cache.get(("elsewhere", "acme"), lambda _: "c") == "c"


@pytest.mark.parametrize("fails", [False, True])
def test_simultaneous_readers_share_a_load_of_a_new_revision(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, joined = Semaphore(0), Semaphore(0)

    class Load(Future[int]):
        def exception(self, timeout: float | None = None) -> BaseException | None:
            waiting.release()
            return super().exception(timeout)

        def result(self, timeout: float | None = None) -> int:
            joined.release()
            return super().result(timeout)

    monkeypatch.setattr(module, "Future", Load)
    cache: TenantCache[int] = TenantCache()
    loads: list[int] = []

    def slow(_known: int | None) -> int:
        loads.append(1)
        # All others wait for the first load, and all but one of them for the second.
        others = waiting if len(loads) == 1 else joined
        assert all(others.acquire(timeout=10) for _ in range(8 - len(loads)))
        if fails:
            raise TryAgain
        return len(loads)

    with ThreadPoolExecutor(8) as pool:
        reading = [pool.submit(cache.get, KEY, slow, revision) for revision in range(8)]
        for one in reading:
            assert isinstance(one.exception(10), TryAgain) if fails else one.result(10)
    assert len(loads) == (1 if fails else 2)

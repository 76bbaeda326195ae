"""A kept value is never older than a write in this process."""

import pytest

from tenants import cache
from tenants.cache import FRESH_SECONDS, TenantCache

KEY = ("database", "acme")


class Clock:
    """A clock that tests move, in place of `monotonic`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(cache, "monotonic", moved)
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


def test_tenants_do_not_share(clock: Clock) -> None:
    cache: TenantCache[str] = TenantCache()
    assert cache.get(KEY, lambda _: "a") == "a"
    assert cache.get(("database", "other"), lambda _: "b") == "b"
    assert cache.get(("elsewhere", "acme"), lambda _: "c") == "c"

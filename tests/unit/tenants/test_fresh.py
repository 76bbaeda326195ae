"""A kept value is never older than a write in this process."""

import pytest

from tenants import fresh
from tenants.fresh import FRESH_SECONDS, Fresh

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
    monkeypatch.setattr(fresh, "monotonic", moved)
    return moved


def test_a_value_is_loaded_once_until_it_is_old(clock: Clock) -> None:
    kept: Fresh[int] = Fresh()
    assert [kept.get(KEY, lambda known: (known or 0) + 1) for _ in range(3)] == [1, 1, 1]
    clock.now += FRESH_SECONDS
    assert kept.get(KEY, lambda known: (known or 0) + 1) == 2


def test_a_write_is_seen_at_once_and_the_last_value_is_built_upon(clock: Clock) -> None:
    kept: Fresh[int] = Fresh()
    kept.get(KEY, lambda _: 5)
    kept.expire(KEY)
    assert kept.get(KEY, lambda known: (known or 0) + 1) == 6


def test_a_write_while_loading_is_not_hidden(clock: Clock) -> None:
    kept: Fresh[str] = Fresh()

    def overtaken(_known: str | None) -> str:
        kept.expire(KEY)
        return "before the write"

    assert kept.get(KEY, overtaken) == "before the write"
    assert kept.get(KEY, lambda _: "after") == "after"


def test_tenants_do_not_share(clock: Clock) -> None:
    kept: Fresh[str] = Fresh()
    assert kept.get(KEY, lambda _: "a") == "a"
    assert kept.get(("database", "other"), lambda _: "b") == "b"
    assert kept.get(("elsewhere", "acme"), lambda _: "c") == "c"

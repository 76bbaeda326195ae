"""Presence in a chat ends when people leave or fall silent, or when their process ends."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipelines.ask.chats import presence
from pipelines.ask.chats.presence import (
    PRESENT_SECONDS,
    REPEAT_SECONDS,
    ROLL_SECONDS,
    TYPING_SECONDS,
    Attendance,
    Presence,
    Signal,
)
from settings import Settings
from tenants.chats.fanout import Announcement
from tenants.core.context import Tenant, acting_as
from tests.clocks import Clock

ANNA = Announcement("acme", "c1", "presence", "operator", "Анна", subject="anna", stream="s1")
BORIS = replace(ANNA, name="Борис", subject="boris", stream="s2")
TYPES = replace(ANNA, kind="typing", stream="")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def seen(clock: Clock) -> Attendance:
    """Attendance as seen by a customer."""
    return Attendance(("customer", "v:1"), clock)


def words(signals: Iterator[Signal]) -> list[str]:
    return [f"{one.name} {one.kind} {'on' if one.active else 'off'}" for one in signals]


def test_whoever_comes_and_goes_is_shown_once(seen: Attendance) -> None:
    assert words(seen.take(ANNA)) == ["Анна presence on"]
    assert words(seen.take(ANNA)) == []
    assert words(seen.take(BORIS)) == ["Борис presence on"]
    assert words(seen.take(replace(ANNA, active=False))) == ["Анна presence off"]
    assert [one.name for one in seen.present] == ["Борис"]


def test_of_two_open_pages_the_second_keeps_a_person_there(seen: Attendance) -> None:
    other = replace(ANNA, stream="s9")
    assert words(seen.take(ANNA)) + words(seen.take(other)) == ["Анна presence on"]
    assert words(seen.take(replace(ANNA, active=False))) == []
    assert words(seen.take(replace(other, active=False))) == ["Анна presence off"]
    assert seen.is_empty


def test_whoever_says_nothing_any_more_is_gone(seen: Attendance, clock: Clock) -> None:
    assert words(seen.take(ANNA)) == ["Анна presence on"]
    clock.now = PRESENT_SECONDS - 1
    assert words(seen.expire()) == []
    clock.now = PRESENT_SECONDS
    assert words(seen.expire()) == ["Анна presence off"]
    assert seen.is_empty


def test_typing_ends_on_request_on_timeout_and_on_leaving(seen: Attendance, clock: Clock) -> None:
    assert words(seen.take(TYPES)) == ["Анна typing on"]
    assert words(seen.take(TYPES)) == ["Анна typing on"]
    stopped = replace(TYPES, active=False)
    assert words(seen.take(stopped)) == ["Анна typing off"]
    assert words(seen.take(stopped)) == []
    assert words(seen.take(TYPES)) == ["Анна typing on"]
    clock.now = TYPING_SECONDS
    assert words(seen.expire()) == ["Анна typing off"]
    assert words(seen.take(ANNA)) + words(seen.take(TYPES)) == ["Анна presence on", "Анна typing on"]
    assert words(seen.take(replace(ANNA, active=False))) == ["Анна typing off", "Анна presence off"]


def test_nobody_is_shown_to_themselves(seen: Attendance) -> None:
    for kind in ("typing", "presence"):
        assert words(seen.take(Announcement("acme", "c1", kind, "customer", subject="v:1", stream="s3"))) == []
    assert seen.is_empty


async def test_a_reader_answers_the_roll_call_of_another_and_repeats_itself(
    installation: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Announcement] = []
    monkeypatch.setattr(presence, "announce_soon", said.append)
    with acting_as(Tenant("acme", "anna")):
        anna = Presence("c1", "operator", "Анна", clock)
    anna.arrive()
    assert [one.kind for one in said] == ["roll_call"]
    clock.now += ROLL_SECONDS
    assert list(anna.take(said)) == []
    assert len(said) == 1, "its own roll call is for the others"
    assert words(anna.take([replace(BORIS, kind="roll_call")])) == ["Борис presence on"]
    assert [(one.kind, one.name) for one in said[1:]] == [("presence", "Анна")]
    clock.now += REPEAT_SECONDS
    assert list(anna.take([])) == []
    assert len(said) == 3
    clock.now += ROLL_SECONDS
    anna.leave()
    assert (said[-1].active, said[-1].stream) == (False, said[0].stream)

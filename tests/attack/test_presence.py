"""Many streams of one chat: a visitor's own, and those of many people."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import httpx
import pytest

from pipelines.ask.chats import presence
from pipelines.ask.chats.presence import Presence
from settings import Settings
from tenants.chats.fanout import Announcement
from tenants.core.context import Tenant, acting_as
from tests.attack.attacking import VICTIM, add_site, visitor_of
from tests.service.serving import Server, problem

READERS = 30


class Time:
    """A clock and a scheduler that a test moves forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.said: list[Announcement] = []
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", self._call_later)
        monkeypatch.setattr(presence, "announce_soon", self.said.append)

    def __call__(self) -> float:
        return self.now

    def _call_later(self, seconds: float, callback: Callable[..., None], *given: object) -> object:
        self.later.append((self.now + seconds, partial(callback, *given)))
        return callback

    def arrive(self, *subjects: str) -> list[Presence]:
        """Connect readers of one chat."""
        readers = []
        for subject in subjects:
            with acting_as(Tenant(VICTIM, subject)):
                readers.append(Presence("c1", "operator", subject, self))
            readers[-1].arrive()
        return readers

    def pass_by(self, seconds: float, readers: Sequence[Presence] = ()) -> None:
        """Advance the clock while each reader receives all announcements."""
        heard, until = 0, self.now + seconds
        while self.now < until and len(self.said) < 10_000:
            new, heard = self.said[heard:], len(self.said)
            for reader in readers:
                list(reader.take(new))
            self.now += 0.05
            due = [callback for at, callback in self.later if at <= self.now]
            self.later = [(at, callback) for at, callback in self.later if at > self.now]
            for callback in due:
                callback()


async def test_streams_of_one_person_are_announced_as_one(
    installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(monkeypatch)
    readers = time.arrive(*["anna"] * READERS)
    time.pass_by(3, readers)
    assert 1 <= len(time.said) <= 3
    time.said.clear()
    for reader in readers[1:]:
        reader.leave()
    time.pass_by(3)
    assert time.said == [], "one stream is left"
    readers[0].leave()
    time.pass_by(3)
    assert [one.active for one in time.said] == [False]


async def test_roll_calls_are_answered_once_a_second(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time(monkeypatch)
    readers = time.arrive(*(f"operator-{number}" for number in range(READERS)))
    time.pass_by(2.5, readers)
    assert max(Counter(one.subject for one in time.said).values()) <= 3
    assert {len(reader.others) for reader in readers} == {READERS - 1}, "everybody sees everybody else"
    for reader in readers:
        reader.leave()
    time.pass_by(3)


async def test_who_comes_and_goes_is_announced_once_a_second(
    installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(monkeypatch)
    for _ in range(60):
        [reader] = time.arrive("anna")
        reader.leave()
        time.pass_by(0.05)
    assert len(time.said) <= 4
    time.pass_by(3)
    assert time.said[-1].active is False
    assert not presence._PEOPLE, "nobody is remembered for ever"


async def test_typing_is_announced_once_a_second(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time(monkeypatch)
    with acting_as(Tenant(VICTIM, "v:1")):
        for _ in range(60):
            presence.typing("chat", "customer", active=True)
        presence.typing("other chat", "customer", active=True)
        assert [said.chat_id for said in time.said] == ["chat", "other chat"]
        time.pass_by(1 + 0.1)
        assert len(time.said) == 2
        for active in (True, False):
            presence.typing("chat", "customer", active=active)
        assert len(time.said) == 3
        time.pass_by(2 + 0.1)
        assert [said.active for said in time.said] == [True, True, True, False]
        time.pass_by(5 + 0.1)
    assert not presence._TYPING


def test_a_visitor_has_so_many_streams_at_once(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_streams")
    with visitor_of(server, "site_streams") as visitor, ExitStack() as streams:
        chat = f"/chats/{visitor.post('/chats', json={}).json()['chat_id']}"

        def follow() -> httpx.Response:
            return streams.enter_context(visitor.stream("GET", f"{chat}/events"))

        opened = [follow() for _ in range(40)]
        followed = [one for one in opened if one.status_code == 200]
        assert 10 <= len(followed) <= 30
        refused = next(one for one in opened if one.status_code != 200)
        refused.read()
        problem(refused, 429, "rate_limited")
        followed[0].close()
        # Once one has ended, another may begin.
        for _ in range(50):
            if (again := follow()).status_code == 200:
                break
        assert again.status_code == 200
